import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { GENERATE, TRACK } from '../../support/routes.ts';
import { rawCall, sharedWorld, startRawWorld } from '../../support/shared-world.ts';
import { envelopeMessage, SIGNED_IN, startWorld, type World } from '../../support/world.ts';

const MUSIC = 'POST /v1/music';
const LIMITS = { 'retry-after': '17', ratelimit: '"default";r=0;t=17', 'x-ratelimit-used': '10' };
const NOT_A_TRACK = 'music-gateway; error=http_protocol_error';
const AUDIO = Uint8Array.from({ length: 1024 }, (_, index) => (index * 31) % 256);

const world = sharedWorld();

function generate(at: World = world): Promise<Response> {
  return at.request(GENERATE.path, { cookie: SIGNED_IN, json: TRACK });
}

describe('a generated track', () => {
  it.each([200, 201, 202])('of a %d has the bytes and the headers of the contract alone', async (status) => {
    const forwarded = {
      'content-type': 'audio/wav',
      'content-disposition': 'attachment; filename="tune.wav"',
      'x-generation-id': 'generation-1',
      'x-music-creation-id': 'creation-1',
    };
    const dropped = { etag: '"1"', 'x-upstream': 'node-7', 'set-cookie': 'upstream=1', location: '/x' };
    const replaced = { 'cache-control': 'public, max-age=60', 'access-control-allow-origin': '*' };
    world.upstream.on(
      MUSIC,
      () => new Response(AUDIO, { status, headers: { ...forwarded, ...dropped, ...replaced } }),
    );
    const response = await generate();
    expect(response.status).toBe(200);
    expect(await response.bytes()).toEqual(AUDIO);
    expect(Object.fromEntries(response.headers)).toMatchObject({ ...forwarded, 'cache-control': 'no-store' });
    for (const name of Object.keys(dropped)) expect(response.headers.has(name)).toBe(false);
  });

  it('is audio/mpeg, without any other header, when the upstream sends none', async () => {
    await using raw = await startRawWorld('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\naudio');
    const response = await generate(raw);
    expect([response.status, await response.text()]).toEqual([200, 'audio']);
    expect(response.headers.get('content-type')).toBe('audio/mpeg');
    expect(response.headers.get('cache-control')).toBe('no-store');
    for (const name of ['content-disposition', 'x-generation-id', 'x-music-creation-id']) {
      expect(response.headers.has(name)).toBe(false);
    }
  });

  it('keeps its Content-Encoding and its bytes when it comes encoded', async () => {
    const encoded = Bun.gzipSync(AUDIO);
    world.upstream.on(MUSIC, () => new Response(encoded, { headers: { 'content-encoding': 'gzip' } }));
    const body = JSON.stringify(TRACK);
    const lines = ['Content-Type: application/json', `Content-Length: ${body.length}`];
    const response = await rawCall(world, `POST ${GENERATE.path}`, { lines, body });
    expect([response.status, response.headers.get('content-encoding')]).toEqual([200, 'gzip']);
    expect(Buffer.from(response.body, 'latin1').equals(encoded)).toBe(true);
  });
});

describe('a refused generation', () => {
  const textOf = async (body: string) => {
    world.upstream.on(MUSIC, () => new Response(body, { status: 422 }));
    return envelopeMessage(await generate(), 422);
  };

  it.each([
    [
      'error.message before message',
      { error: { message: 'Inner.', code: 'x' }, message: 'Outer.' },
      'Inner.',
    ],
    ['message beside a text', { error: 'insufficient', message: 'No credits.', code: 'x' }, 'No credits.'],
    ['message beside a blank text', { error: { message: ' ' }, message: 'No credits.' }, 'No credits.'],
    ['message beside a number', { error: { message: 7 }, message: 'No credits.' }, 'No credits.'],
    ['the text unchanged', { message: ' <b>Hakuna</b> \u{1f3b5}\n' }, ' <b>Hakuna</b> \u{1f3b5}\n'],
  ])('has %s of the upstream, whatever the content type', async (_, body, text) => {
    expect(await textOf(JSON.stringify(body))).toBe(text);
  });

  // Bodies that do not end: faults/faulty-upstream.test.ts.
  it.each([
    ...[
      '{"detail":"secret"}',
      '{"error":"secret"}',
      '{"error":{"message":""},"message":" "}',
      'null',
      '"secret"',
    ],
    ...[
      '{"error":{"message":["secret"]},"message":{"text":"secret"}}',
      '[{"message":"secret"}]',
      '<h1>secret',
    ],
    ...[
      '{"message":"secret"',
      '{"__proto__":{"message":"secret"}}',
      '',
      `{"message":"${'secret'.repeat(20_000)}"}`,
    ],
  ])('has the gateway’s own text when the upstream sends none: %.60s', async (body) => {
    expect(await textOf(body)).toBe(messages.en.generationFailed);
    expect(world.log).toEqual([]);
  });

  it.each([400, 402, 403, 404, 409, 413, 422, 429, 500, 502, 503, 504])(
    'keeps the status %i and its rate limits, is not tried again and logs no text of the upstream',
    async (status) => {
      await using own = startWorld();
      const dropped = { 'set-cookie': 'upstream=1', location: '/v1/elsewhere', 'x-upstream': '7' };
      const headers = { ...LIMITS, ...dropped };
      own.upstream.on(MUSIC, () => Response.json({ message: 'secret' }, { status, headers }));
      const response = await generate(own);
      expect(Object.fromEntries(response.headers)).toMatchObject({ ...LIMITS, 'cache-control': 'no-store' });
      expect(response.headers.get('access-control-expose-headers')).toContain('x-ratelimit-used');
      for (const name of [...Object.keys(dropped), 'proxy-status'])
        expect(response.headers.has(name)).toBe(false);
      expect(await envelopeMessage(response, status)).toBe('secret');
      expect(own.upstream.calls).toEqual([MUSIC]);
      expect(own.log).toHaveLength(status >= 500 ? 1 : 0);
      expect(own.log.join()).not.toMatch(/secret|access-1|refresh-1|taarab/);
    },
  );
});

// How its connection is closed: unit/fetch-upstream.test.ts.
describe('a success without a track', () => {
  it.each([204, 205, 206, 300, 302, 304, 307])('is a 502: status %i', async (status) => {
    await using own = startWorld();
    const body = [204, 205, 304].includes(status) ? null : 'a part';
    const headers = { location: '/v1/elsewhere', 'set-cookie': 'upstream=1' };
    own.upstream.on(MUSIC, () => new Response(body, { status, headers }));
    const response = await generate(own);
    expect(response.headers.get('proxy-status')).toBe(NOT_A_TRACK);
    expect([response.headers.has('location'), response.headers.getSetCookie()]).toEqual([false, []]);
    expect(await envelopeMessage(response, 502)).toBe(messages.en.upstreamInvalid);
    expect(own.upstream.calls).toEqual([MUSIC]);
    const upstream = [{ call: 'music', outcome: 'http_protocol_error' }];
    expect(await own.line({ status: 502 })).toMatchObject({
      level: 'warn',
      reason: 'upstreamInvalid',
      upstream,
    });
  });

  it.each([
    ['of no length', 'Content-Length: 0\r\n\r\n'],
    ['that ends without a byte', 'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['that ends with the connection', 'Connection: close\r\n\r\n'],
  ])('is a 502: a body %s', async (_, head) => {
    await using raw = await startRawWorld(`HTTP/1.1 200 OK\r\n${head}`);
    const response = await generate(raw);
    expect(response.headers.get('proxy-status')).toBe(NOT_A_TRACK);
    expect(await envelopeMessage(response, 502)).toBe(messages.en.upstreamInvalid);
    expect([raw.connections(), raw.admission.streams.inUse]).toEqual([1, 0]);
  });
});
