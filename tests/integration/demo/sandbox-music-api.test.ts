/** The contract of the sandbox's upstream API: sessions, generations, library, audio files. */

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

const START = Date.UTC(2026, 4, 6);
const HOUR_SECONDS = 3_600;

let sandbox: Sandbox;
let slow: Sandbox;
/** The clocks of both stand still unless a test moves them. */
let elapsedMs = START;
const now = () => elapsedMs;
beforeAll(async () => {
  sandbox = await startTestSandbox({ startingBalance: 20, now });
  // At this pace three seconds of music take an hour.
  const pace = 3 / HOUR_SECONDS;
  slow = await startTestSandbox({ startingBalance: 20, pace, accessTokenSeconds: 24 * HOUR_SECONDS, now });
});
afterAll(() => Promise.all([sandbox.stop(), slow.stop()]));

const post = (path: string, body: unknown, headers = {}) =>
  postJson(sandbox.upstream.url + path, body, headers);
const refresh = (token: string) => post('/v1/auth/refresh', { refresh_token: token });

async function profileStatus({ access_token }: Tokens): Promise<number> {
  const headers = { Authorization: `Bearer ${access_token}` };
  return (await fetch(`${sandbox.upstream.url}/v1/me`, { headers })).status;
}

function idOf({ headers }: Response) {
  return headers.get('x-music-creation-id');
}

/** Reads the first piece of the body and cancels the rest. */
async function firstPiece(response: Response): Promise<Uint8Array | undefined> {
  const reader = response.body?.getReader();
  const piece = await reader?.read();
  await reader?.cancel();
  return piece?.value;
}

describe('the sandbox’s sessions', () => {
  it('have tokens of every character that is awkward in a cookie, and are renewed when they have expired', async () => {
    const old = await signIn(sandbox, 'Amina');
    for (const token of [old.access_token, old.refresh_token]) {
      expect(token).toMatch(/^\d+\|(?=.*\+)(?=.*\/)[A-Za-z0-9+/]+=$/);
    }
    expect(old.expires_in).toBe(60);
    elapsedMs += 59_999;
    expect(await profileStatus(old)).toBe(200);
    elapsedMs += 1;
    expect(await profileStatus(old)).toBe(401);
    const before = sandbox.upstream.counts().refreshes;
    const renewed = await readTokens(await refresh(old.refresh_token));
    expect(renewed.refresh_token).not.toBe(old.refresh_token);
    expect(await profileStatus(renewed)).toBe(200);
    expect(sandbox.upstream.counts().refreshes).toBe(before + 1);
  });

  it('are revoked as a whole family when a spent refresh token is presented, but not for a made-up one', async () => {
    const [stolen, bystander] = [await signIn(sandbox, 'Amina'), await signIn(sandbox, 'Amina')];
    const renewed = await readTokens(await refresh(stolen.refresh_token));
    const before = sandbox.upstream.counts().refusedRefreshes;
    expect((await refresh(stolen.refresh_token)).status).toBe(401);
    for (const tokens of [stolen, renewed]) expect(await profileStatus(tokens)).toBe(401);
    expect((await refresh(renewed.refresh_token)).status).toBe(401);
    const [id] = bystander.refresh_token.split('|');
    expect((await refresh(`${id}|made+up/==`)).status).toBe(401);
    expect(sandbox.upstream.counts().refusedRefreshes).toBe(before + 3);
    expect(await profileStatus(bystander)).toBe(200);
    expect((await refresh(bystander.refresh_token)).status).toBe(200);
  });

  it('end at a sign-out, which needs the access token, and with their refresh token', async () => {
    const [tokens, other] = [await signIn(sandbox, 'Amina'), await signIn(sandbox, 'Amina')];
    const signOut = (headers = {}) =>
      post('/v1/auth/logout', { refresh_token: tokens.refresh_token }, headers);
    expect((await signOut()).status).toBe(401);
    expect(await profileStatus(tokens)).toBe(200);
    expect((await signOut({ Authorization: `Bearer ${tokens.access_token}` })).status).toBe(204);
    expect(await profileStatus(tokens)).toBe(401);
    expect((await refresh(tokens.refresh_token)).status).toBe(401);
    expect(await profileStatus(other)).toBe(200);
    sandbox.upstream.expireAccessTokens();
    expect(await profileStatus(other)).toBe(401);
    expect((await refresh(other.refresh_token)).status).toBe(200);
  });
});

describe('the sandbox’s account', () => {
  it('has a profile and the models', async () => {
    const account = await openAccount(sandbox, 'Zoë');
    const created_at = new Date(elapsedMs).toISOString();
    expect(await account.read('/v1/me')).toEqual({ id: expect.any(String), name: 'Zoë', created_at });
    const models = [['speech'], ['music'], ['music'], ['image']].map((modalities) => ({ modalities }));
    expect(await account.read('/v1/models')).toMatchObject(models);
  });

  it('shows generations in library, balance, activity and the monthly summary', async () => {
    const account = await openAccount(sandbox, 'billing');
    await (await account.generate(ORDER)).arrayBuffer();
    await (await account.generate({ ...ORDER, model: 'sandbox-music-2' })).arrayBuffer();
    expect(await account.credits()).toBe(20 - 3 - 6);
    const library = await account.read('/v1/music/creations');
    expect(library).toMatchObject([{ model: 'sandbox-music-2' }, { model: 'sandbox-music-1' }]);
    expect(await account.read('/v1/activity')).toMatchObject([
      { type: 'generation', credits: 6 },
      { type: 'generation', credits: 3 },
      { type: 'sign_in', credits: 0 },
    ]);
    const summary = { month: '2026-05', generations: 2, music_length_ms: 6_000, credits_spent: 9 };
    expect(await account.read('/v1/billing/summary?month=2026-05')).toEqual(summary);
    expect(await account.read('/v1/billing/summary?month=2026-04')).toMatchObject({ generations: 0 });
    expect((await account.request('/v1/billing/summary?month=2026-13')).status).toBe(422);
  });

  it.each([
    [402, { music_length_ms: 20_001 }],
    [422, { model: 'sandbox-speech-1' }],
    [422, { is_public: undefined }],
    [422, { music_length_ms: 2_999 }],
  ])('pays nothing and gets nothing for an order that is refused with %i: %j', async (status, mistake) => {
    const account = await openAccount(sandbox, 'mistaken');
    expect((await account.generate({ ...ORDER, ...mistake })).status).toBe(status);
    expect(await account.credits()).toBe(20);
    expect(await account.read('/v1/music/creations')).toEqual([]);
  });
});

describe('the sandbox’s generation', () => {
  it('streams a WAV file with the headers of a download, which the library keeps', async () => {
    const account = await openAccount(sandbox, 'download');
    const response = await account.generate(ORDER);
    const filename = 'rain-on-a-tin-roof-slow-piano.wav';
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'audio/wav',
      'content-disposition': `attachment; filename="${filename}"`,
      'x-generation-id': expect.stringMatching(/^[\da-f-]{36}$/),
    });
    const audio = await response.bytes();
    const id = idOf(response);
    expect(await account.read('/v1/music/creations')).toMatchObject([
      { id, status: 'ready', prompt: ORDER.prompt, is_public: false, credits: 3, size_bytes: audio.length },
    ]);
    const content = await account.request(`/v1/music/creations/${id}/content`);
    expect(await content.bytes()).toEqual(audio);
  });

  it('sends audio before it is complete, and is finished without its caller', async () => {
    const account = await openAccount(slow, 'impatient');
    const response = await account.generate(ORDER);
    const path = `/v1/music/creations/${idOf(response)}`;
    expect((await firstPiece(response))?.length).toBeGreaterThan(44);
    expect((await account.request(`${path}/content`)).status).toBe(409);
    elapsedMs += HOUR_SECONDS * 1_000 - 1;
    expect(await account.read(path)).toMatchObject({ status: 'generating' });
    elapsedMs += 1;
    expect(await account.read(path)).toMatchObject({ status: 'ready' });
    expect((await account.request(`${path}/content`)).status).toBe(200);
  });

  it('is ready by the time its last byte has arrived, whatever the clock says', async () => {
    const brisk = await startTestSandbox({ pace: 100, now: () => 0 });
    const account = await openAccount(brisk, 'patient');
    await (await account.generate(ORDER)).arrayBuffer();
    expect(await account.read('/v1/music/creations')).toMatchObject([{ status: 'ready' }]);
    await brisk.stop();
  });

  it('is joined, and later repeated at once, by the same order with the same key, and charged once', async () => {
    const account = await openAccount(slow, 'doubled');
    const before = slow.upstream.counts().generations;
    const order = () => account.generate(ORDER, 'key');
    const [first, second] = await Promise.all([order(), order()]);
    expect(idOf(second)).toBe(idOf(first));
    expect(await firstPiece(second)).toEqual(await firstPiece(first));
    elapsedMs += HOUR_SECONDS * 1_000;
    const third = await order();
    expect(idOf(third)).toBe(idOf(first));
    expect((await third.bytes()).length).toBe(144_044);
    expect((await account.generate({ ...ORDER, prompt: 'Another' }, 'key')).status).toBe(422);
    expect(await account.read('/v1/music/creations')).toHaveLength(1);
    expect(await account.credits()).toBe(17);
    expect(slow.upstream.counts().generations).toBe(before + 1);
    expect(idOf(await account.generate(ORDER, 'other key'))).not.toBe(idOf(first));
  });
});

describe('the sandbox’s audio file', () => {
  const SIZE = 480_044;
  let account: Awaited<ReturnType<typeof openAccount>>;
  let path: string;
  let audio: Uint8Array;
  let etag: string;
  beforeAll(async () => {
    account = await openAccount(sandbox, 'Listener');
    const response = await account.generate({ ...ORDER, music_length_ms: 10_000 });
    path = `/v1/music/creations/${idOf(response)}`;
    audio = await response.bytes();
    etag = (await content()).headers.get('etag') ?? '';
  });

  const content = (headers: Record<string, string> = {}, method = 'GET') =>
    account.request(`${path}/content`, { method, headers });

  it.each([
    ['bytes=0-0', 0, 1],
    ['bytes=1001-2000', 1001, 2001],
    ['bytes=479000-', 479_000, SIZE],
    ['bytes=-3', 480_041, SIZE],
    ['bytes=-999999', 0, SIZE],
    ['bytes=480043-999999', 480_043, SIZE],
  ])('is sent in part for the range %s', async (range, from, to) => {
    const response = await content({ Range: range });
    expect(response.status).toBe(206);
    expect(response.headers.get('content-range')).toBe(`bytes ${from}-${to - 1}/${SIZE}`);
    // The whole file is streamed.
    if (to - from < SIZE) expect(response.headers.get('content-length')).toBe(String(to - from));
    expect(Buffer.compare(await response.bytes(), audio.subarray(from, to))).toBe(0);
  });

  const part = { Range: 'bytes=0-9' };
  it.each<[status: number, Record<string, string>]>([
    [416, { Range: 'bytes=480044-' }],
    [416, { Range: 'bytes=-0' }],
    ...['bytes=5-2', 'bytes=-', 'bytes=0-1,5-6', 'seconds=0-1'].map((Range): [number, { Range: string }] => [
      200,
      { Range },
    ]),
    [206, { ...part, 'If-Range': 'ETAG' }],
    [200, { ...part, 'If-Range': '"other"' }],
    [200, { ...part, 'If-Range': 'W/ETAG' }],
    [200, { ...part, 'If-Range': 'Wed, 06 May 2026 00:00:00 GMT' }],
    [304, { ...part, 'If-None-Match': '"other", ETAG' }],
    [304, { 'If-None-Match': 'W/ETAG' }],
    [304, { 'If-None-Match': '*' }],
    [200, { 'If-None-Match': '"other"' }],
  ])('is answered with %d to %j', async (status, headers) => {
    expect(etag).toMatch(/^"[\da-f]+"$/);
    const named = Object.entries(headers).map(([name, value]) => [name, value.replace('ETAG', etag)]);
    const response = await content(Object.fromEntries(named));
    expect(response.status).toBe(status);
    if (status === 416) expect(response.headers.get('content-range')).toBe(`bytes */${SIZE}`);
    else expect(response.headers.get('etag')).toBe(etag);
    if (status === 200) expect((await response.bytes()).length).toBe(SIZE);
    else await response.body?.cancel();
  });

  it('is described by HEAD, which ignores a range', async () => {
    const { status, headers } = await content(part, 'HEAD');
    expect(status).toBe(200);
    const described = {
      'content-type': 'audio/wav',
      'content-length': String(SIZE),
      'accept-ranges': 'bytes',
      etag,
    };
    expect(Object.fromEntries(headers)).toMatchObject(described);
  });

  it('can be heard by anybody exactly while it is public', async () => {
    const patch = (isPublic: unknown) =>
      account.request(path, { method: 'PATCH', body: JSON.stringify({ is_public: isPublic }) });
    const anonymous = (suffix = '') =>
      fetch(`${sandbox.upstream.url}${path.replace('creations', 'public')}${suffix}`);
    expect((await patch('yes')).status).toBe(422);
    for (const suffix of ['', '/content']) expect((await anonymous(suffix)).status).toBe(404);
    expect(await (await patch(true)).json()).toMatchObject({ data: { is_public: true } });
    expect(await (await anonymous()).json()).toMatchObject({
      data: { is_public: true, prompt: ORDER.prompt },
    });
    expect(Buffer.compare(await (await anonymous('/content')).bytes(), audio)).toBe(0);
    await patch(false);
    expect((await anonymous('/content')).status).toBe(404);
    expect(await account.read('/v1/activity')).toMatchObject([
      { type: 'visibility', description: 'Made private' },
      { type: 'visibility', description: 'Made public' },
      { type: 'generation' },
      { type: 'sign_in' },
    ]);
  });

  it('is hidden from other accounts', async () => {
    const other = await openAccount(sandbox, 'Baraka');
    const statuses = [
      await other.request(path),
      await other.request(`${path}/content`),
      await other.request(path, { method: 'PATCH', body: '{"is_public":true}' }),
    ].map(({ status }) => status);
    expect(statuses).toEqual([404, 404, 404]);
    expect(await other.read('/v1/music/creations')).toEqual([]);
  });
});
