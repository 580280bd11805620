/** The contract of the sandbox's music API, as far as tour and browsers, which use the rest, do not need it. */

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

describe('the sandbox’s sessions', () => {
  const post = (path: string, body: unknown, headers = {}) =>
    postJson(sandbox.upstream.url + path, body, headers);
  const refresh = (token: string) => post('/v1/auth/refresh', { refresh_token: token });
  const bearer = ({ access_token }: Tokens) => ({ Authorization: `Bearer ${access_token}` });
  const signOut = ({ refresh_token }: Tokens, headers = {}) =>
    post('/v1/auth/logout', { refresh_token }, headers);
  const profileStatus = async (tokens: Tokens) =>
    (await fetch(`${sandbox.upstream.url}/v1/me`, { headers: bearer(tokens) })).status;

  it.each<[string, refreshes: number, (tokens: Tokens) => Promise<Response>, status: number]>([
    ['when a spent refresh token is sent', 1, ({ refresh_token }) => refresh(refresh_token), 401],
    ['at a sign-out', 0, (tokens) => signOut(tokens, bearer(tokens)), 204],
  ])('end %s, with all tokens of the family and no others', async (_, refreshes, end, status) => {
    const [tokens, other] = [await signIn(sandbox, 'Amina'), await signIn(sandbox, 'Amina')];
    // So that a web app sees early what breaks in a cookie.
    for (const token of [tokens.access_token, tokens.refresh_token])
      expect(token).toMatch(/^\d+\|(?=.*\+)(?=.*\/)[A-Za-z0-9+/]+=$/);
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

it('a creation of the sandbox is finished without its caller, once for a key, and then can be heard and deleted', async () => {
  const account = await openAccount(sandbox, 'Ada');
  const order = () => account.generate(ORDER, 'key');
  const [first, second] = await Promise.all([order(), order()]);
  for (const { body } of [first, second]) await body?.cancel();
  const path = `/v1/music/creations/${first.headers.get('x-music-creation-id')}`;
  const read = async (headers: Record<string, string>) => {
    const response = await account.request(`${path}/content`, { headers });
    return [response.status, await response.bytes()] as const;
  };
  const remove = async () => (await account.request(path, { method: 'DELETE' })).status;
  expect((await account.generate({ ...ORDER, prompt: 'Another' }, 'key')).status).toBe(422);
  const renamed = await account.request(path, { method: 'PATCH', body: JSON.stringify({ title: ' Snow ' }) });
  expect(renamed.status).toBe(200);
  elapsedMs += HOUR_MS - 1;
  const described = { title: 'Snow', prompt: ORDER.prompt, author: 'Ada', is_public: false };
  expect(await account.read(path)).toMatchObject({ ...described, status: 'generating' });
  expect([(await read({}))[0], await remove()]).toEqual([409, 409]);

  elapsedMs += 1;
  expect(await account.read(path)).toMatchObject({ ...described, status: 'ready' });
  const whole = await (await order()).bytes();
  expect([whole.length, await account.credits()]).toEqual([144_044, 17]);
  const { headers } = await account.request(`${path}/content`, { method: 'HEAD' });
  const part = { range: 'bytes=1001-2000', 'if-range': headers.get('etag') ?? '' };
  expect(await read(part)).toEqual([206, whole.subarray(1_001, 2_001)]);
  expect(await read({ ...part, 'if-range': '"other"' })).toEqual([200, whole]);
  expect(await read({ range: 'bytes=144000-' })).toEqual([206, whole.subarray(144_000)]);
  expect(await read({ range: 'bytes=-3' })).toEqual([206, whole.subarray(-3)]);
  expect((await read({ range: 'bytes=144044-' }))[0]).toBe(416);
  expect([await remove(), await remove()]).toEqual([204, 404]);
});
