import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { GENERATE, TRACK } from '../../support/routes.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { envelopeMessage, type RequestOptions, SIGNED_IN } from '../../support/world.ts';

const MUSIC = 'POST /v1/music';
const PAYLOAD = { ...TRACK, force_instrumental: false, is_public: false };
const AUDIO = Uint8Array.from(Bun.gzipSync(new Uint8Array(1024)));
/** Headers of the upstream that are for nobody else: a world refuses those that the OpenAPI document does not have. */
const DROPPED = { etag: '"1"', 'x-upstream': 'node-7', 'set-cookie': 'a=b', location: '/v1/elsewhere' };

const world = sharedWorld();

/** The last keys are written as given; a repeated key counts with its last value. */
function generate(keys = '', options: RequestOptions = {}): Promise<Response> {
  const body = `${JSON.stringify(TRACK).slice(0, -1)}${keys && `,${keys}`}}`;
  const headers = { 'content-type': 'application/json', ...options.headers };
  const call = { method: 'POST', cookie: SIGNED_IN, body, decompress: false };
  return world.request(GENERATE.path, { ...call, ...options, headers });
}

describe('the call for a generation', () => {
  const send = async (keys: string, options?: RequestOptions) => {
    world.upstream.on(MUSIC, () => new Response('audio'));
    const { status, headers } = await generate(keys, options);
    expect([status, headers.getSetCookie()]).toEqual([200, []]);
    const received = world.upstream.last(MUSIC);
    return { body: JSON.parse(received.body), headers: Object.fromEntries(received.headers) };
  };

  it('has exactly the five keys, the Idempotency-Key, the access token and nothing of the browser', async () => {
    const ofTheBrowser = {
      accept: 'audio/*',
      'accept-encoding': 'gzip',
      authorization: 'Bearer of-the-browser',
    };
    const { body, headers } = await send('"__proto__":{"is_public":true},"price":0', {
      cookie: `${SIGNED_IN}; theme=dark`,
      headers: { ...ofTheBrowser, 'idempotency-key': '"quoted",  caf\xe9' },
    });
    expect(body).toStrictEqual(PAYLOAD);
    expect(headers).toEqual({
      accept: 'application/json',
      // Players expect audio that is not encoded.
      'accept-encoding': 'identity',
      authorization: 'Bearer access-1',
      'content-length': expect.any(String),
      'content-type': 'application/json',
      host: new URL(world.upstream.upstreamUrl).host,
      'idempotency-key': '"quoted",  caf\xe9',
      traceparent: expect.any(String),
      'user-agent': `Bun/${Bun.version}`,
      'x-request-id': expect.any(String),
    });
  });

  const LONGEST = { model: 'm'.repeat(120), prompt: 'p'.repeat(4100) };

  it.each<[what: string, given: object, sent?: object]>([
    ['is trimmed', { model: '\t music-1 ', prompt: ' \n two  words\u00a0\r\n' }, { prompt: 'two  words' }],
    ['keeps every character', { prompt: '"Ngoma" \\ \u{1f941}\u0000\u2028 é e\u0301\n\t</script>' }],
    ['has texts of 1 character', { model: 'm', prompt: 'p' }],
    ['has 120 and, when trimmed, 4100 characters', { ...LONGEST, prompt: `${LONGEST.prompt} ` }, LONGEST],
    ['lasts 3 seconds, and is instrumental', { music_length_ms: 3000, force_instrumental: true }],
    ['lasts 10 minutes, and is public', { music_length_ms: 600_000, is_public: true }],
  ])('has a track that %s', async (_, given, sent = given) => {
    expect((await send(JSON.stringify(given).slice(1, -1))).body).toStrictEqual({ ...PAYLOAD, ...sent });
  });

  it('has false for a flag that is not true, and the length as a number, however it is written', async () => {
    for (const flag of ['false', 'null', '1', '"true"', '{}', '[true]']) {
      const keys = `"force_instrumental":${flag},"is_public":${flag},"music_length_ms":3e4`;
      expect((await send(keys)).body).toStrictEqual(PAYLOAD);
    }
  });

  const NO_TEXTS = ['""', '" \\t\\n"', 'null', '1', 'true', '["music-1"]', '{"length":1}'];
  const NO_LENGTHS = ['2999', '600001', '3000.5', '-30000', '1e999', '"30000"', 'null', 'true', '[30000]'];

  it.each([
    ['model', [...NO_TEXTS, `"${'x'.repeat(121)}"`], 'model must be a string of 1 to 120 characters.'],
    ['prompt', [...NO_TEXTS, `"${'x'.repeat(4101)}"`], 'prompt must be a string of 1 to 4100 characters.'],
    ['music_length_ms', NO_LENGTHS, 'music_length_ms must be a whole number from 3000 to 600000.'],
  ])('is not made with an invalid %s, or without one', async (key, values, rule) => {
    const without = JSON.stringify({ ...TRACK, [key]: undefined });
    expect(await envelopeMessage(await generate('', { body: without }), 400)).toBe(rule);
    for (const value of values) {
      const response = await generate(`"${key}":${value}`);
      expect([value, await envelopeMessage(response, 400)]).toEqual([value, rule]);
    }
    expect(world.upstream.calls).toEqual([]);
  });
});

describe('a generated track', () => {
  it.each([200, 201, 202])('of a %d has the bytes and the headers of the contract alone', async (status) => {
    const forwarded = {
      'content-type': 'audio/wav',
      'content-encoding': 'gzip',
      'content-disposition': 'attachment; filename="tune.wav"',
      'x-generation-id': 'generation-1',
      'x-music-creation-id': 'creation-1',
    };
    const replaced = { 'cache-control': 'public, max-age=60', 'access-control-allow-origin': '*' };
    const headers = { ...forwarded, ...DROPPED, ...replaced, location: '/base/v1/jobs/7' };
    world.upstream.on(MUSIC, () => new Response(AUDIO, { status, headers }));
    const response = await generate();
    expect([response.status, await response.bytes()]).toEqual([200, AUDIO]);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      ...forwarded,
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      incremental: '?1',
    });
    // That of a job; it is one of the headers that a script may read.
    expect(response.headers.get('location')).toBe(status === 202 ? '/api/upstream/v1/jobs/7' : null);
    expect(response.headers.getSetCookie()).toEqual([]);
  });

  it('is audio/mpeg when the upstream names no type', async () => {
    async function* untyped() {
      yield AUDIO;
    }
    world.upstream.on(MUSIC, () => new Response(untyped()));
    const response = await generate();
    expect([await response.bytes(), response.headers.get('content-type')]).toEqual([AUDIO, 'audio/mpeg']);
  });

  // How its connection is closed, and what counts as a first byte: unit/fetch-upstream.test.ts.
  it.each([200, 204, 205, 206])('is missing: a %i is a 502', async (status) => {
    const body = status === 206 ? 'a part' : null;
    world.upstream.on(MUSIC, () => new Response(body, { status, headers: DROPPED }));
    const response = await generate();
    expect(await envelopeMessage(response, 502)).toBe(messages.en.upstreamInvalid);
    expect(response.headers.get('proxy-status')).toBe('music-gateway; error=http_protocol_error');
    expect([response.headers.getSetCookie(), world.upstream.calls]).toEqual([[], [MUSIC]]);
  });
});

describe('a refused generation', () => {
  const OWN = messages.en.generationFailed;
  // None of them has a text. Bodies that do not end: faults/faulty-upstream.test.ts; late ones: session/replay.test.ts.
  const OTHERS = String.raw`{"detail":"secret"} {"error":{"message":""},"message":"\n"} null <h1>secret
    {"__proto__":{"message":"secret"}} {"error":{"message":["secret"]},"message":{"text":"secret"}}`;

  it.each([
    ['{"error":{"message":"Inner.","code":"x"},"message":"Outer."}', 'Inner.'],
    ['{"error":"insufficient","message":"No credits.","code":"x"}', 'No credits.'],
    ['{"error":{"message":" "},"message":"No credits."}', 'No credits.'],
    ['{"message":" <b>Hakuna</b> \u{1f3b5}\\n"}', ' <b>Hakuna</b> \u{1f3b5}\n'],
    [`{"message":"No credits."${' '.repeat(60_000)}}`, 'No credits.'],
    ...[...OTHERS.split(/\s+/), '', `{"message":"${'s'.repeat(100_000)}"}`].map((body) => [body]),
  ])('has the message of the upstream, or the gateway’s own: case %#', async (body, text = OWN) => {
    world.upstream.on(MUSIC, () => new Response(body, { status: 422 }));
    expect(await envelopeMessage(await generate(), 422)).toBe(text);
  });

  it.each([302, 400, 401, 429, 500])(
    'keeps the status %i and its rate limits, is not tried again and logs no text of the upstream',
    async (status) => {
      const challenge = status === 401 && { 'www-authenticate': 'Bearer error="insufficient_scope"' };
      const limits = {
        'retry-after': '17',
        ratelimit: '"d";r=0;t=17',
        'x-ratelimit-used': '10',
        ...challenge,
      };
      const refusal = { status, headers: { ...limits, ...DROPPED } };
      world.upstream.on(MUSIC, () => Response.json({ message: 'secret' }, refusal));
      const response = await generate();
      expect(Object.fromEntries(response.headers)).toMatchObject({ ...limits, 'cache-control': 'no-store' });
      expect(response.headers.get('access-control-expose-headers')).toContain('x-ratelimit-used');
      // The text may be in any language.
      for (const name of ['set-cookie', 'proxy-status', 'content-language'])
        expect(response.headers.has(name)).toBeFalse();
      expect(await envelopeMessage(response, status)).toBe('secret');
      expect([world.upstream.calls, world.log.length]).toEqual([[MUSIC], Number(status >= 500)]);
      expect(world.log.join()).not.toContain('secret');
    },
  );
});
