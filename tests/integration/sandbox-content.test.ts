/** The sandbox's audio files: ranges, validators, and who may hear them. */

import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import type { Sandbox } from '../../src/demo/sandbox/sandbox.ts';
import { ORDER, openAccount, startTestSandbox } from '../support/sandbox-account.ts';

let sandbox: Sandbox;
let account: Awaited<ReturnType<typeof openAccount>>;
let path: string;
let audio: Uint8Array;
let etag: string;
beforeAll(async () => {
  sandbox = await startTestSandbox();
  account = await openAccount(sandbox, 'Amina');
  const response = await account.generate({ ...ORDER, music_length_ms: 10_000 });
  path = `/v1/music/creations/${response.headers.get('x-music-creation-id')}`;
  audio = await response.bytes();
  etag = (await content()).headers.get('etag') ?? '';
});
afterAll(() => sandbox.stop());

function content(headers: Record<string, string> = {}, method = 'GET'): Promise<Response> {
  return account.request(`${path}/content`, { method, headers });
}

describe('upstream, GET .../content', () => {
  it.each([
    ['bytes=0-0', 0, 1],
    ['bytes=43-45', 43, 46],
    ['bytes=1001-2000', 1001, 2001],
    ['bytes=479000-', 479_000, 480_044],
    ['bytes=1-', 1, 480_044],
    ['bytes=-3', 480_041, 480_044],
    ['bytes=-999999', 0, 480_044],
    ['bytes=480043-999999', 480_043, 480_044],
  ])('answers %s with 206 and those bytes', async (range, from, to) => {
    const response = await content({ Range: range });
    expect(response.status).toBe(206);
    expect(response.headers.get('content-range')).toBe(`bytes ${from}-${to - 1}/${audio.length}`);
    const bytes = await response.bytes();
    expect(Buffer.compare(bytes, audio.subarray(from, to))).toBe(0);
  });

  it('sends a Content-Length with a range that is sent in one piece', async () => {
    const response = await content({ Range: 'bytes=100-200099' });
    expect(response.headers.get('content-length')).toBe('200000');
    await response.body?.cancel();
  });

  it.each(['bytes=480044-', 'bytes=480044-480050', 'bytes=-0'])('answers %s with 416', async (range) => {
    const response = await content({ Range: range });
    expect(response.status).toBe(416);
    expect(response.headers.get('content-range')).toBe('bytes */480044');
  });

  it.each(['bytes=5-2', 'bytes=-', 'bytes=0-1,5-6', 'seconds=0-1', 'nonsense'])(
    'ignores the range %s',
    async (range) => {
      const response = await content({ Range: range });
      expect(response.status).toBe(200);
      expect((await response.bytes()).length).toBe(audio.length);
    },
  );

  it('honours If-Range only for the strong ETag it sent', async () => {
    expect(etag).toMatch(/^"[\da-f]+"$/);
    expect((await content({ Range: 'bytes=0-9', 'If-Range': etag })).status).toBe(206);
    for (const other of ['"other"', `W/${etag}`, 'Wed, 06 May 2026 00:00:00 GMT']) {
      const response = await content({ Range: 'bytes=0-9', 'If-Range': other });
      expect(response.status).toBe(200);
      await response.body?.cancel();
    }
  });

  it.each(['"other", ETAG', 'W/ETAG', '*'])('answers If-None-Match: %s with 304', async (condition) => {
    const response = await content({ 'If-None-Match': condition.replace('ETAG', etag), Range: 'bytes=0-9' });
    expect(response.status).toBe(304);
    expect(response.headers.get('etag')).toBe(etag);
    expect(await response.text()).toBe('');
  });

  it('sends the file when If-None-Match names another', async () => {
    const response = await content({ 'If-None-Match': '"other"' });
    expect(response.status).toBe(200);
    expect(response.headers.get('accept-ranges')).toBe('bytes');
    expect(Buffer.compare(await response.bytes(), audio)).toBe(0);
  });
});

describe('upstream, HEAD .../content', () => {
  it('tells type, size and validators, and ignores a range', async () => {
    const response = await content({ Range: 'bytes=0-9' }, 'HEAD');
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'audio/wav',
      'content-length': String(audio.length),
      'accept-ranges': 'bytes',
      etag,
    });
    expect(await response.text()).toBe('');
  });
});

describe('upstream, public and private creations', () => {
  const setPublic = (isPublic: unknown) =>
    account.request(path, { method: 'PATCH', body: JSON.stringify({ is_public: isPublic }) });
  const anonymous = (suffix = '') =>
    fetch(`${sandbox.upstream.url}${path.replace('creations', 'public')}${suffix}`);

  it('lets anybody hear a creation exactly while it is public', async () => {
    expect((await anonymous()).status).toBe(404);
    expect((await anonymous('/content')).status).toBe(404);

    const published = await setPublic(true);
    expect(published.status).toBe(200);
    expect(await published.json()).toMatchObject({ data: { is_public: true } });
    expect(await (await anonymous()).json()).toMatchObject({
      data: { is_public: true, prompt: ORDER.prompt },
    });
    expect(Buffer.compare(await (await anonymous('/content')).bytes(), audio)).toBe(0);

    await setPublic(false);
    expect((await anonymous('/content')).status).toBe(404);
    expect(await account.read('/v1/activity')).toMatchObject([
      { type: 'visibility', description: 'Made private' },
      { type: 'visibility', description: 'Made public' },
      { type: 'generation' },
      { type: 'sign_in' },
    ]);
  });

  it('refuses a visibility that is neither true nor false', async () => {
    expect((await setPublic('yes')).status).toBe(422);
  });

  it("hides one account's creations from another", async () => {
    const other = await openAccount(sandbox, 'Baraka');
    expect((await other.request(path)).status).toBe(404);
    expect((await other.request(`${path}/content`)).status).toBe(404);
    expect((await other.request(path, { method: 'PATCH', body: '{"is_public":true}' })).status).toBe(404);
    expect(await other.read('/v1/music/creations')).toEqual([]);
  });
});
