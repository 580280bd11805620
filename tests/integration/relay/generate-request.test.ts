import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { GENERATE, TRACK } from '../../support/routes.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { envelopeMessage, type RequestOptions, SIGNED_IN } from '../../support/world.ts';

const MUSIC = 'POST /v1/music';
const LENGTH_RULE = 'music_length_ms must be a whole number from 3000 to 600000.';
const PAYLOAD = { ...TRACK, force_instrumental: false, is_public: false };

const world = sharedWorld();
world.upstream.on(MUSIC, () => new Response('audio'));

function generate(track: unknown, options: RequestOptions = {}): Promise<Response> {
  return world.request(GENERATE.path, { cookie: SIGNED_IN, json: track, ...options });
}

/** A valid order in which the last keys are written as given; a repeated key counts with its last value. */
function generateFrom(keys: string): Promise<Response> {
  const body = `${JSON.stringify(TRACK).slice(0, -1)},${keys}}`;
  const headers = { 'content-type': 'application/json' };
  return world.request(GENERATE.path, { method: 'POST', cookie: SIGNED_IN, headers, body });
}

function expectPayload(response: Response, payload: Record<string, unknown>): void {
  expect(response.status).toBe(200);
  expect(world.upstream.calls).toEqual([MUSIC]);
  expect(JSON.parse(world.upstream.last(MUSIC).body)).toStrictEqual(payload);
}

describe('the call for a generation', () => {
  it('has exactly the five keys, the access token and nothing of the browser', async () => {
    const headers = {
      accept: 'audio/*',
      'accept-encoding': 'gzip',
      authorization: 'Bearer from-the-browser',
    };
    const response = await generate(TRACK, { cookie: `${SIGNED_IN}; theme=dark`, headers });
    expectPayload(response, PAYLOAD);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(Object.fromEntries(world.upstream.last(MUSIC).headers)).toEqual({
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
    expect(world.log).toEqual([]);
  });

  it.each([
    ['is trimmed', '\t music-1 ', ' \n two  words\u00a0\r\n'],
    ['keeps every character', 'music-1', '"Ngoma" \\ \u{1f941}\u0000\u2028 é e\u0301\n\t</script>'],
    ['may have 1 character', 'm', 'p'],
    ['may have 120 and 4100 characters', 'm'.repeat(120), 'p'.repeat(4100)],
    ['is measured after trimming', ` ${'m'.repeat(120)}\n`, `\t${'p'.repeat(4100)} `],
  ])('has a model and a prompt that %s', async (_, model, prompt) => {
    const response = await generate({ ...TRACK, model, prompt });
    expectPayload(response, { ...PAYLOAD, model: model.trim(), prompt: prompt.trim() });
  });

  it.each([3000, 600_000])('may have a music_length_ms of %d', async (music_length_ms) => {
    const response = await generate({ ...TRACK, music_length_ms });
    expectPayload(response, { ...PAYLOAD, music_length_ms });
  });

  it.each(['3e4', '30000.0', '300e2', '0.3E5'])(
    'may have a music_length_ms written as %s',
    async (number) => {
      expectPayload(await generateFrom(`"music_length_ms":${number}`), PAYLOAD);
    },
  );

  it.each([
    { force_instrumental: true, is_public: true },
    { force_instrumental: true, is_public: false },
    { force_instrumental: false, is_public: true },
  ])('has the flags %o', async (flags) => {
    expectPayload(await generate({ ...TRACK, ...flags }), { ...TRACK, ...flags });
  });

  it.each(['false', 'null', '1', '"true"', '" true "', '"yes"', '{}', '[true]'])(
    'has false for the flag %s',
    async (flag) => {
      expectPayload(await generateFrom(`"force_instrumental":${flag},"is_public":${flag}`), PAYLOAD);
    },
  );

  it.each(['0d3c7a52-5a0b-4f0e-9f0c-6a1f3d1b9c11', ' spaced  inside ', '"quoted", comma', 'caf\xe9'])(
    'has the Idempotency-Key %j unchanged',
    async (key) => {
      const response = await generate(TRACK, { headers: { 'idempotency-key': key } });
      expect(response.status).toBe(200);
      // HTTP itself removes the blanks around a value.
      expect(world.upstream.last(MUSIC).headers.get('idempotency-key')).toBe(key.trim());
    },
  );
});

describe.each([
  { key: 'model', limit: 120, rule: 'model must be a string of 1 to 120 characters.' },
  { key: 'prompt', limit: 4100, rule: 'prompt must be a string of 1 to 4100 characters.' },
])('an order for a generation', ({ key, limit, rule }) => {
  it.each([
    ['missing', undefined],
    ['empty', ''],
    ['blank', ' \t\n'],
    ['null', null],
    ['a number', 1],
    ['true', true],
    ['an array', ['music-1']],
    ['an object', { length: 1 }],
    ['too long', 'x'.repeat(limit + 1)],
  ])(`is refused when its ${key} is %s`, async (_, value) => {
    const response = await generate({ ...TRACK, [key]: value });
    expect(await envelopeMessage(response, 400)).toBe(rule);
    expect(world.upstream.calls).toEqual([]);
    expect(world.log).toEqual([]);
  });
});

describe('an order for a generation', () => {
  it.each([
    ...['2999', '600001', '3000.5', '2999.9999', '0', '-30000', '1e999'],
    ...['"30000"', '""', 'null', 'true', '[30000]', '{}'],
  ])('is refused for a music_length_ms of %s', async (length) => {
    const response = await generateFrom(`"music_length_ms":${length}`);
    expect(await envelopeMessage(response, 400)).toBe(LENGTH_RULE);
    expect(world.upstream.calls).toEqual([]);
    expect(world.log).toEqual([]);
  });

  it('is refused without a music_length_ms, and as a form, which cannot hold a number', async () => {
    const missing = await generate({ model: 'music-1', prompt: 'a tune' });
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const body = 'model=music-1&prompt=a+tune&music_length_ms=30000';
    const form = await generate(undefined, { method: 'POST', headers, body });
    for (const response of [missing, form]) {
      expect(await envelopeMessage(response, 400)).toBe(LENGTH_RULE);
    }
    expect(world.upstream.calls).toEqual([]);
  });

  it('is refused for the missing session first', async () => {
    const response = await generate({ ...TRACK, model: '' }, { cookie: '' });
    expect(await envelopeMessage(response, 401)).toBe(messages.en.notSignedIn);
    expect(world.upstream.calls).toEqual([]);
  });
});
