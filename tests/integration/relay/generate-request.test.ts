import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { GENERATE, TRACK } from '../../support/routes.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { envelopeMessage, type RequestOptions, SIGNED_IN } from '../../support/world.ts';

const MUSIC = 'POST /v1/music';
const PAYLOAD = { ...TRACK, force_instrumental: false, is_public: false };

const world = sharedWorld();
world.upstream.on(MUSIC, () => new Response('audio'));

/** The last keys are written as given; a repeated key counts with its last value. */
function generate(keys = '', options: RequestOptions = {}): Promise<Response> {
  const body = `${JSON.stringify(TRACK).slice(0, -1)}${keys && `,${keys}`}}`;
  const headers = { 'content-type': 'application/json', ...options.headers };
  return world.request(GENERATE.path, { method: 'POST', cookie: SIGNED_IN, body, ...options, headers });
}

describe('the call for a generation', () => {
  it('has exactly the five keys, the access token and nothing of the browser', async () => {
    const response = await generate('', {
      cookie: `${SIGNED_IN}; theme=dark`,
      headers: { accept: 'audio/*', 'accept-encoding': 'gzip', authorization: 'Bearer from-the-browser' },
    });
    expect([response.status, response.headers.getSetCookie()]).toEqual([200, []]);
    const { headers, body } = world.upstream.last(MUSIC);
    expect(JSON.parse(body)).toStrictEqual(PAYLOAD);
    expect(Object.fromEntries(headers)).toEqual({
      accept: 'application/json',
      // Players expect audio that is not encoded.
      'accept-encoding': 'identity',
      authorization: 'Bearer access-1',
      'content-length': expect.any(String),
      'content-type': 'application/json',
      host: new URL(world.upstream.upstreamUrl).host,
      traceparent: expect.any(String),
      'user-agent': `Bun/${Bun.version}`,
      'x-request-id': expect.any(String),
    });
  });

  it.each<[what: string, given: object, sent?: object]>([
    ['is trimmed', { model: '\t music-1 ', prompt: ' \n two  words\u00a0\r\n' }, { prompt: 'two  words' }],
    ['keeps every character', { prompt: '"Ngoma" \\ \u{1f941}\u0000\u2028 é e\u0301\n\t</script>' }],
    ['may have 1 character', { model: 'm', prompt: 'p' }],
    ['may have 120 and 4100 characters', { model: 'm'.repeat(120), prompt: 'p'.repeat(4100) }],
    ['is measured after trimming', { prompt: `\t${'p'.repeat(4100)} ` }, { prompt: 'p'.repeat(4100) }],
    ['may last 3 seconds', { music_length_ms: 3000 }],
    ['may last 10 minutes', { music_length_ms: 600_000 }],
    ['may be both', { force_instrumental: true, is_public: true }],
    ['may be instrumental', { force_instrumental: true, is_public: false }],
    ['may be public', { force_instrumental: false, is_public: true }],
  ])('has a track that %s', async (_, given, sent = given) => {
    expect((await generate(JSON.stringify(given).slice(1, -1))).status).toBe(200);
    expect(JSON.parse(world.upstream.last(MUSIC).body)).toStrictEqual({ ...PAYLOAD, ...sent });
  });

  it('has the length as a number, however it is written', async () => {
    for (const number of ['3e4', '30000.0', '300e2', '0.3E5']) await generate(`"music_length_ms":${number}`);
    for (const { body } of world.upstream.received) expect(JSON.parse(body)).toStrictEqual(PAYLOAD);
    expect(world.upstream.received).toHaveLength(4);
  });

  it('has false for a flag that is not the literal true', async () => {
    const flags = ['false', 'null', '1', '"true"', '" true "', '"yes"', '{}', '[true]'];
    for (const flag of flags) await generate(`"force_instrumental":${flag},"is_public":${flag}`);
    for (const { body } of world.upstream.received) expect(JSON.parse(body)).toStrictEqual(PAYLOAD);
    expect(world.upstream.received).toHaveLength(flags.length);
  });

  it.each(['0d3c7a52-5a0b-4f0e-9f0c-6a1f3d1b9c11', ' spaced  inside ', '"quoted", comma', 'caf\xe9'])(
    'has the Idempotency-Key %j unchanged',
    async (key) => {
      expect((await generate('', { headers: { 'idempotency-key': key } })).status).toBe(200);
      // HTTP itself removes the blanks around a value.
      expect(world.upstream.last(MUSIC).headers.get('idempotency-key')).toBe(key.trim());
    },
  );
});

describe('an order for a generation', () => {
  const NO_TEXTS = ['""', '" \\t\\n"', 'null', '1', 'true', '["music-1"]', '{"length":1}'];

  it.each([
    ['model', [...NO_TEXTS, `"${'x'.repeat(121)}"`], 'model must be a string of 1 to 120 characters.'],
    ['prompt', [...NO_TEXTS, `"${'x'.repeat(4101)}"`], 'prompt must be a string of 1 to 4100 characters.'],
    [
      'music_length_ms',
      [
        ...['2999', '600001', '3000.5', '2999.9999', '0', '-30000', '1e999', '"30000"', '""', 'null', 'true'],
        ...['[30000]', '{}'],
      ],
      'music_length_ms must be a whole number from 3000 to 600000.',
    ],
  ])('is refused for its %s', async (key, values, rule) => {
    for (const value of values) {
      const response = await generate(`"${key}":${value}`);
      expect([value, await envelopeMessage(response, 400)]).toEqual([value, rule]);
    }
    const missing = await generate('', { body: JSON.stringify({ ...TRACK, [key]: undefined }) });
    expect(await envelopeMessage(missing, 400)).toBe(rule);
    expect([world.upstream.calls, world.log]).toEqual([[], []]);
  });

  it('is refused as a form, which cannot hold a number, and for the missing session first', async () => {
    const body = new URLSearchParams({ ...TRACK, music_length_ms: '30000' }).toString();
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    expect((await generate('', { body, headers })).status).toBe(400);
    const without = await generate('"model":""', { cookie: '' });
    expect(await envelopeMessage(without, 401)).toBe(messages.en.notSignedIn);
    expect(world.upstream.calls).toEqual([]);
  });
});
