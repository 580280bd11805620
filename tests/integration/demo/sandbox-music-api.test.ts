/** The contract of the sandbox's upstream API: sessions, generations, library, audio files. */

import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { type Sandbox, startSandbox } from '../../../src/demo/sandbox/sandbox.ts';
import {
  ORDER,
  openAccount,
  postJson,
  readTokens,
  SANDBOX_CLIENT,
  signIn,
  startTestSandbox,
} from '../../support/sandbox-account.ts';

const START = Date.UTC(2026, 4, 6);
const HOUR_SECONDS = 3_600;

let sandbox: Sandbox;
let slow: Sandbox;
/** The clocks of both stand still unless a test moves them. */
let elapsedMs = START;
beforeAll(async () => {
  sandbox = await startTestSandbox({ startingBalance: 20, now: () => elapsedMs });
  // At this pace three seconds of music take an hour.
  slow = await startTestSandbox({
    startingBalance: 20,
    pace: 3 / HOUR_SECONDS,
    accessTokenSeconds: 24 * HOUR_SECONDS,
    now: () => elapsedMs,
  });
});
afterAll(() => Promise.all([sandbox.stop(), slow.stop()]));

function refresh(refreshToken: string): Promise<Response> {
  return postJson(`${sandbox.upstream.url}/v1/auth/refresh`, { refresh_token: refreshToken });
}

async function profileStatus(accessToken: string): Promise<number> {
  const headers = { Authorization: `Bearer ${accessToken}` };
  return (await fetch(`${sandbox.upstream.url}/v1/me`, { headers })).status;
}

function idsOf({ headers }: Response) {
  return { generation: headers.get('x-generation-id'), creation: headers.get('x-music-creation-id') };
}

/** Reads the first piece of the body and cancels the rest. */
async function firstPiece(response: Response): Promise<Uint8Array | undefined> {
  const reader = response.body?.getReader();
  const piece = await reader?.read();
  await reader?.cancel();
  return piece?.value;
}

describe('the sandbox’s sessions', () => {
  it('begin with tokens that contain a pipe, a plus, a slash and an equals sign', async () => {
    const tokens = await signIn(sandbox, 'Amina');
    expect(tokens.expires_in).toBe(60);
    for (const token of [tokens.access_token, tokens.refresh_token]) {
      expect(token).toMatch(/^\d+\|(?=.*\+)(?=.*\/)[A-Za-z0-9+/]+=$/);
    }
    expect(await profileStatus(tokens.access_token)).toBe(200);
  });

  it.each([
    ['{"access_token":"forged"}', 401, 'The identity provider does not know this access token'],
    ['', 400, 'The body is not JSON'],
    ['{}', 422, '/access_token: Expected required property'],
    ['{"access_token":""}', 422, expect.stringContaining('/access_token')],
    ['{"access_token":"line\\nbreak"}', 422, expect.stringContaining('/access_token')],
  ])('do not begin with the body %j', async (body, status, message) => {
    const response = await fetch(`${sandbox.upstream.url}/v1/auth/idp`, { method: 'POST', body });
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({ error: { message } });
  });

  it('are renewed when the access token has expired', async () => {
    const old = await signIn(sandbox, 'Amina');
    elapsedMs += 59_999;
    expect(await profileStatus(old.access_token)).toBe(200);
    elapsedMs += 1;
    expect(await profileStatus(old.access_token)).toBe(401);
    const before = sandbox.upstream.counts().refreshes;
    const response = await refresh(old.refresh_token);
    expect(response.status).toBe(200);
    const renewed = await readTokens(response);
    expect(renewed.refresh_token).not.toBe(old.refresh_token);
    expect(await profileStatus(renewed.access_token)).toBe(200);
    expect(sandbox.upstream.counts().refreshes).toBe(before + 1);
  });

  it('are revoked as a whole family when a spent refresh token is presented', async () => {
    const stolen = await signIn(sandbox, 'Amina');
    const bystander = await signIn(sandbox, 'Amina');
    const renewed = await readTokens(await refresh(stolen.refresh_token));
    expect((await refresh(stolen.refresh_token)).status).toBe(401);
    expect(await profileStatus(renewed.access_token)).toBe(401);
    expect(await profileStatus(stolen.access_token)).toBe(401);
    expect((await refresh(renewed.refresh_token)).status).toBe(401);
    expect(await profileStatus(bystander.access_token)).toBe(200);
  });

  it('are not revoked for a made-up refresh token', async () => {
    const tokens = await signIn(sandbox, 'Amina');
    const [id] = tokens.refresh_token.split('|');
    const before = sandbox.upstream.counts().refusedRefreshes;
    expect((await refresh(`${id}|made+up/==`)).status).toBe(401);
    expect(sandbox.upstream.counts().refusedRefreshes).toBe(before + 1);
    expect(await profileStatus(tokens.access_token)).toBe(200);
    expect((await refresh(tokens.refresh_token)).status).toBe(200);
  });

  it('end at a sign-out, which needs the access token', async () => {
    const [tokens, other] = [await signIn(sandbox, 'Amina'), await signIn(sandbox, 'Amina')];
    const signOut = (headers = {}) =>
      postJson(`${sandbox.upstream.url}/v1/auth/logout`, { refresh_token: tokens.refresh_token }, headers);
    expect((await signOut()).status).toBe(401);
    expect(await profileStatus(tokens.access_token)).toBe(200);
    expect((await signOut({ Authorization: `Bearer ${tokens.access_token}` })).status).toBe(204);
    expect(await profileStatus(tokens.access_token)).toBe(401);
    expect((await refresh(tokens.refresh_token)).status).toBe(401);
    expect(await profileStatus(other.access_token)).toBe(200);
  });

  it('keep their refresh tokens when expireAccessTokens() lets the access tokens expire', async () => {
    const tokens = await signIn(sandbox, 'Amina');
    sandbox.upstream.expireAccessTokens();
    expect(await profileStatus(tokens.access_token)).toBe(401);
    expect((await refresh(tokens.refresh_token)).status).toBe(200);
  });
});

it.each([
  ['GET', '/v1/me', 401],
  ['POST', '/v1/music', 401],
  ['GET', '/v1/nothing', 404],
  ['DELETE', '/v1/me', 405],
])('the sandbox refuses %s %s with %i and an error message', async (method, path, status) => {
  const response = await fetch(`${sandbox.upstream.url}${path}`, { method });
  expect(response.status).toBe(status);
  expect(response.headers.get('allow')).toBe(status === 405 ? 'GET, HEAD' : null);
  expect(await response.json()).toEqual({ error: { message: expect.any(String) } });
});

describe('the sandbox’s account', () => {
  it('has a profile and the models', async () => {
    const account = await openAccount(sandbox, 'Zoë');
    const created_at = new Date(elapsedMs).toISOString();
    expect(await account.read('/v1/me')).toEqual({ id: expect.any(String), name: 'Zoë', created_at });
    expect(await account.read('/v1/models')).toMatchObject([
      { id: 'sandbox-speech-1', modalities: ['speech'] },
      { id: 'sandbox-music-2', modalities: ['music'] },
      { id: 'sandbox-music-1', modalities: ['music'] },
      { id: 'sandbox-image-1', modalities: ['image'] },
    ]);
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
    expect(await account.read('/v1/billing/summary?month=2026-05')).toEqual({
      month: '2026-05',
      generations: 2,
      music_length_ms: 6_000,
      credits_spent: 9,
    });
    expect(await account.read('/v1/billing/summary?month=2026-04')).toMatchObject({ generations: 0 });
    expect((await account.request('/v1/billing/summary?month=2026-13')).status).toBe(422);
  });

  it('pays nothing and gets nothing when the balance is too low', async () => {
    const account = await openAccount(sandbox, 'poor');
    const response = await account.generate({ ...ORDER, music_length_ms: 20_001 });
    expect(response.status).toBe(402);
    expect(await response.json()).toEqual({ error: { message: 'This costs 21 credits; 20 are left' } });
    expect(await account.credits()).toBe(20);
    expect(await account.read('/v1/music/creations')).toEqual([]);
  });

  it('pays nothing for an order that is refused', async () => {
    const account = await openAccount(sandbox, 'mistaken');
    for (const mistake of [
      { model: 'sandbox-speech-1' },
      { model: 'nothing' },
      { seed: 1 },
      { is_public: undefined },
      { music_length_ms: '3000' },
      { music_length_ms: 2_999 },
    ]) {
      const { status } = await account.generate({ ...ORDER, ...mistake });
      expect({ ...mistake, status }).toEqual({ ...mistake, status: 422 });
    }
    expect(await account.credits()).toBe(20);
  });
});

describe('the sandbox’s generation', () => {
  it('streams a WAV file with the headers of a download', async () => {
    const account = await openAccount(sandbox, 'download');
    const response = await account.generate(ORDER);
    expect(response.status).toBe(200);
    const filename = 'rain-on-a-tin-roof-slow-piano.wav';
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'audio/wav',
      'content-disposition': `attachment; filename="${filename}"`,
      'x-generation-id': expect.stringMatching(/^[\da-f-]{36}$/),
    });
    const audio = await response.bytes();
    expect(new TextDecoder().decode(audio.subarray(0, 4))).toBe('RIFF');
    const id = response.headers.get('x-music-creation-id');
    expect(await account.read('/v1/music/creations')).toMatchObject([
      { id, status: 'ready', prompt: ORDER.prompt, is_public: false, credits: 3, size_bytes: audio.length },
    ]);
    const content = await account.request(`/v1/music/creations/${id}/content`);
    expect(await content.bytes()).toEqual(audio);
  });

  it('sends audio before it is complete, and is finished without its caller', async () => {
    const account = await openAccount(slow, 'impatient');
    const response = await account.generate(ORDER);
    const path = `/v1/music/creations/${idsOf(response).creation}`;
    expect((await firstPiece(response))?.length).toBeGreaterThan(44);
    expect(await account.read(path)).toMatchObject({ status: 'generating' });
    expect((await account.request(`${path}/content`)).status).toBe(409);
    elapsedMs += HOUR_SECONDS * 1_000 - 1;
    expect(await account.read(path)).toMatchObject({ status: 'generating' });
    elapsedMs += 1;
    expect(await account.read(path)).toMatchObject({ status: 'ready' });
    expect((await account.request(`${path}/content`)).status).toBe(200);
  });

  it('is ready by the time its last byte has arrived, whatever the clock says', async () => {
    const brisk = await startTestSandbox({ pace: 100, now: () => 0 });
    try {
      const account = await openAccount(brisk, 'patient');
      await (await account.generate(ORDER)).arrayBuffer();
      expect(await account.read('/v1/music/creations')).toMatchObject([{ status: 'ready' }]);
    } finally {
      await brisk.stop();
    }
  });

  it('is joined, and later repeated at once, by an order with the same key, and charged once', async () => {
    const account = await openAccount(slow, 'doubled');
    const before = slow.upstream.counts().generations;
    const order = () => account.generate(ORDER, 'key');
    const [first, second] = await Promise.all([order(), order()]);
    expect(idsOf(second)).toEqual(idsOf(first));
    expect(await firstPiece(second)).toEqual(await firstPiece(first));
    expect(await account.read('/v1/music/creations')).toMatchObject([{ status: 'generating' }]);
    elapsedMs += HOUR_SECONDS * 1_000;
    const [third, fourth] = [await order(), await order()];
    expect(idsOf(third)).toEqual(idsOf(first));
    const audio = await third.bytes();
    expect(audio.length).toBe(144_044);
    expect(await fourth.bytes()).toEqual(audio);
    expect(await account.read('/v1/music/creations')).toHaveLength(1);
    expect(await account.credits()).toBe(17);
    expect(slow.upstream.counts().generations).toBe(before + 1);
  });

  it('is refused for a key that was used for another order', async () => {
    const account = await openAccount(sandbox, 'mixed-up');
    await firstPiece(await account.generate(ORDER, 'key'));
    expect((await account.generate({ ...ORDER, prompt: 'Another' }, 'key')).status).toBe(422);
    expect(await account.credits()).toBe(17);
  });

  it('is another one for another key, another account, or without a key', async () => {
    const [one, two] = [await openAccount(sandbox, 'one'), await openAccount(sandbox, 'two')];
    const responses = [
      await one.generate(ORDER, 'key'),
      await two.generate(ORDER, 'key'),
      await one.generate(ORDER, 'other key'),
      await one.generate(ORDER),
      await one.generate(ORDER),
    ];
    expect(new Set(responses.map((response) => idsOf(response).creation)).size).toBe(5);
    await Promise.all(responses.map(firstPiece));
    expect([await one.credits(), await two.credits()]).toEqual([8, 17]);
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
    path = `/v1/music/creations/${idsOf(response).creation}`;
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
    expect(Buffer.compare(await response.bytes(), audio.subarray(from, to))).toBe(0);
  });

  it('has a Content-Length for a range that is sent in one piece', async () => {
    const response = await content({ Range: 'bytes=100-200099' });
    expect(response.headers.get('content-length')).toBe('200000');
    await response.body?.cancel();
  });

  it.each(['bytes=480044-', 'bytes=480044-480050', 'bytes=-0'])('is not sent for %s', async (range) => {
    const response = await content({ Range: range });
    expect(response.status).toBe(416);
    expect(response.headers.get('content-range')).toBe(`bytes */${SIZE}`);
  });

  it.each(['bytes=5-2', 'bytes=-', 'bytes=0-1,5-6', 'seconds=0-1', 'nonsense'])(
    'is sent as a whole for the range %s',
    async (range) => {
      const response = await content({ Range: range });
      expect(response.status).toBe(200);
      expect((await response.bytes()).length).toBe(SIZE);
    },
  );

  it('is sent in part with If-Range only for its strong ETag', async () => {
    expect(etag).toMatch(/^"[\da-f]+"$/);
    expect((await content({ Range: 'bytes=0-9', 'If-Range': etag })).status).toBe(206);
    for (const other of ['"other"', `W/${etag}`, 'Wed, 06 May 2026 00:00:00 GMT']) {
      const response = await content({ Range: 'bytes=0-9', 'If-Range': other });
      expect(response.status).toBe(200);
      await response.body?.cancel();
    }
  });

  it.each(['"other", ETAG', 'W/ETAG', '*'])('is not sent again for If-None-Match: %s', async (condition) => {
    const response = await content({ 'If-None-Match': condition.replace('ETAG', etag), Range: 'bytes=0-9' });
    expect(response.status).toBe(304);
    expect(response.headers.get('etag')).toBe(etag);
    expect(await response.text()).toBe('');
  });

  it('is sent as a whole when If-None-Match names another', async () => {
    const response = await content({ 'If-None-Match': '"other"' });
    expect(response.status).toBe(200);
    expect(response.headers.get('accept-ranges')).toBe('bytes');
    expect(Buffer.compare(await response.bytes(), audio)).toBe(0);
  });

  it('is described by HEAD, which ignores a range', async () => {
    const response = await content({ Range: 'bytes=0-9' }, 'HEAD');
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'audio/wav',
      'content-length': String(SIZE),
      'accept-ranges': 'bytes',
      etag,
    });
    expect(await response.text()).toBe('');
  });

  it('can be heard by anybody exactly while it is public', async () => {
    const patch = (isPublic: unknown) =>
      account.request(path, { method: 'PATCH', body: JSON.stringify({ is_public: isPublic }) });
    const anonymous = (suffix = '') =>
      fetch(`${sandbox.upstream.url}${path.replace('creations', 'public')}${suffix}`);
    expect((await patch('yes')).status).toBe(422);
    expect((await anonymous()).status).toBe(404);
    expect((await anonymous('/content')).status).toBe(404);
    const published = await patch(true);
    expect(published.status).toBe(200);
    expect(await published.json()).toMatchObject({ data: { is_public: true } });
    const shown = await (await anonymous()).json();
    expect(shown).toMatchObject({ data: { is_public: true, prompt: ORDER.prompt } });
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
    expect((await other.request(path)).status).toBe(404);
    expect((await other.request(`${path}/content`)).status).toBe(404);
    expect((await other.request(path, { method: 'PATCH', body: '{"is_public":true}' })).status).toBe(404);
    expect(await other.read('/v1/music/creations')).toEqual([]);
  });
});

describe('startSandbox()', () => {
  it('rejects with EADDRINUSE for a taken port, and leaves nothing running', async () => {
    const { clientId, redirectUri } = SANDBOX_CLIENT;
    const free = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() });
    const identityProviderPort = free.port ?? 0;
    await free.stop(true);
    const options = { clientId, redirectUris: [redirectUri], identityProviderPort };
    const upstreamPort = Number(new URL(sandbox.upstream.url).port);
    await expect(startSandbox({ ...options, upstreamPort })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    const second = await startSandbox(options);
    expect(second.identityProviderUrl).toBe(`http://127.0.0.1:${identityProviderPort}`);
    await second.stop();
  });
});
