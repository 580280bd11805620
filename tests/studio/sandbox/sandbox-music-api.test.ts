/** The contract of the sandbox's upstream API, as far as tour and browsers, which use the rest, do not need it. */

import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import type { Sandbox } from '../../../src/demo/sandbox/sandbox.ts';
import {
  ORDER,
  openAccount,
  postJson,
  readTokens,
  signIn,
  startTestSandbox,
  type Tokens,
} from '../../support/sandbox-account.ts';

const HOUR_MS = 3_600_000;

let sandbox: Sandbox;
/** Its clock stands still unless a test moves it. */
let elapsedMs = Date.UTC(2026, 4, 6);
beforeAll(async () => {
  // At this pace three seconds of music take an hour.
  const slowly = { pace: 3 / 3_600, accessTokenSeconds: 86_400, now: () => elapsedMs };
  sandbox = await startTestSandbox({ startingBalance: 20, ...slowly });
});
afterAll(() => sandbox.stop());

const pathOf = ({ headers }: Response) => `/v1/music/creations/${headers.get('x-music-creation-id')}`;

describe('the sandbox’s sessions', () => {
  const post = (path: string, body: unknown, headers = {}) =>
    postJson(sandbox.upstream.url + path, body, headers);
  const refresh = (token: string) => post('/v1/auth/refresh', { refresh_token: token });
  const bearer = ({ access_token }: Tokens) => ({ Authorization: `Bearer ${access_token}` });
  const signOut = ({ refresh_token }: Tokens, headers = {}) =>
    post('/v1/auth/logout', { refresh_token }, headers);
  const profileStatus = async (tokens: Tokens) =>
    (await fetch(`${sandbox.upstream.url}/v1/me`, { headers: bearer(tokens) })).status;

  it('have tokens of every character that is awkward in a cookie, and are renewed when they have expired', async () => {
    const old = await signIn(sandbox, 'Amina');
    for (const token of [old.access_token, old.refresh_token])
      expect(token).toMatch(/^\d+\|(?=.*\+)(?=.*\/)[A-Za-z0-9+/]+=$/);
    elapsedMs += 86_399_999;
    expect(await profileStatus(old)).toBe(200);
    elapsedMs += 1;
    expect(await profileStatus(old)).toBe(401);
    const renewed = await readTokens(await refresh(old.refresh_token));
    expect(await profileStatus(renewed)).toBe(200);
    sandbox.upstream.expireAccessTokens();
    expect(await profileStatus(renewed)).toBe(401);
  });

  it.each<[string, refreshes: number, (tokens: Tokens) => Promise<Response>, status: number]>([
    ['when a spent refresh token is sent', 1, ({ refresh_token }) => refresh(refresh_token), 401],
    ['at a sign-out', 0, (tokens) => signOut(tokens, bearer(tokens)), 204],
  ])('end %s, with all tokens of the family and no others', async (_, refreshes, end, status) => {
    const [tokens, other] = [await signIn(sandbox, 'Amina'), await signIn(sandbox, 'Amina')];
    const newest = refreshes ? await readTokens(await refresh(tokens.refresh_token)) : tokens;
    // Neither a made-up token nor a sign-out without the access token ends them.
    const madeUp = tokens.refresh_token.replace(/\|.*/, '|made+up/==');
    for (const refused of [refresh(madeUp), signOut(tokens)]) expect((await refused).status).toBe(401);
    expect(await profileStatus(newest)).toBe(200);

    expect((await end(tokens)).status).toBe(status);
    for (const each of [tokens, newest]) expect(await profileStatus(each)).toBe(401);
    expect((await refresh(newest.refresh_token)).status).toBe(401);
    expect(await profileStatus(other)).toBe(200);
    expect((await refresh(other.refresh_token)).status).toBe(200);
  });
});

describe('the sandbox’s creations', () => {
  it('are finished without their caller, once for a key, and then can be heard and deleted, as renamed', async () => {
    const account = await openAccount(sandbox, 'Ada');
    const order = () => account.generate(ORDER, 'key');
    const [first, second] = await Promise.all([order(), order()]);
    for (const { body } of [first, second]) await body?.cancel();
    const path = pathOf(first);
    const remove = async () => (await account.request(path, { method: 'DELETE' })).status;
    const change = async (changes: object) =>
      (await account.request(path, { method: 'PATCH', body: JSON.stringify(changes) })).status;
    expect((await account.generate({ ...ORDER, prompt: 'Another' }, 'key')).status).toBe(422);
    for (const wrong of [{}, { title: ' ' }, { title: 'x'.repeat(121) }, { author: 'Eve' }])
      expect(await change(wrong)).toBe(422);
    expect([await change({ title: ' Snow ' }), await change({ is_public: true })]).toEqual([200, 200]);
    elapsedMs += HOUR_MS - 1;
    const described = { title: 'Snow', prompt: ORDER.prompt, author: 'Ada', is_public: true };
    expect(await account.read(path)).toMatchObject({ ...described, status: 'generating' });
    expect([(await account.request(`${path}/content`)).status, await remove()]).toEqual([409, 409]);

    elapsedMs += 1;
    expect(await account.read(path)).toMatchObject({ ...described, status: 'ready' });
    const third = await order();
    expect([pathOf(second), pathOf(third)]).toEqual([path, path]);
    expect((await third.bytes()).length).toBe(144_044);
    expect(await account.credits()).toBe(17);
    expect([await remove(), await remove(), await change({ title: 'Hail' })]).toEqual([204, 404, 404]);
    const types = ['deletion', 'visibility', 'generation', 'sign_in'];
    expect(await account.read('/v1/activity')).toMatchObject(types.map((type) => ({ type })));
  });

  const SIZE = 480_044;
  let file: (init: RequestInit) => Promise<Response>;
  let audio: Uint8Array;
  beforeAll(async () => {
    const account = await openAccount(sandbox, 'Listener');
    const response = await account.generate({ ...ORDER, music_length_ms: 10_000 });
    await response.body?.cancel();
    file = (init) => account.request(`${pathOf(response)}/content`, init);
    elapsedMs += 4 * HOUR_MS;
    audio = await (await file({})).bytes();
  });

  const part = { Range: 'bytes=1001-2000' };
  // A part of it is what the tour asks for.
  it.each<[status: number, sent: readonly number[], Record<string, string>]>([
    [206, [479_000, SIZE], { Range: 'bytes=479000-' }],
    [206, [480_041, SIZE], { Range: 'bytes=-3' }],
    [200, [0, SIZE], { Range: 'bytes=5-2' }],
    [206, [1001, 2001], { ...part, 'If-Range': 'ETAG' }],
    [200, [0, SIZE], { ...part, 'If-Range': '"other"' }],
    [304, [0, 0], { ...part, 'If-None-Match': '"other", W/ETAG' }],
    [416, [0, 0], { Range: `bytes=${SIZE}-` }],
  ])('have a file that is sent with %d and the bytes %j for %j', async (status, sent, headers) => {
    const described = (await file({ method: 'HEAD' })).headers;
    expect(described.get('content-length')).toBe(String(SIZE));
    const etag = described.get('etag') ?? '';
    const named = Object.entries(headers).map(([name, value]) => [name, value.replace('ETAG', etag)]);
    const response = await file({ headers: Object.fromEntries(named) });
    expect(response.status).toBe(status);
    if (status < 400) expect(Buffer.compare(await response.bytes(), audio.subarray(...sent))).toBe(0);
  });
});
