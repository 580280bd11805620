import { describe, expect, it } from 'bun:test';
import { type Language, type MessageKey, messages } from '../../../src/gateway/http/messages.ts';
import { reply, silence } from '../../support/session-calls.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { envelopeMessage, type RequestOptions, SIGNED_IN, startWorld } from '../../support/world.ts';

const world = sharedWorld();

describe('Accept-Language', () => {
  it.each<[language: Language, what: string, headers: string[]]>([
    ['en', 'English', ['en', 'en-GB,en;q=0.9']],
    ['en', 'a language that we do not have', ['fr', '*', 'swg', 'swahili', 'x-sw', 'fr;sw']],
    ['en', 'Swahili refused', ['sw;q=0', 'sw;q=0, *', 'sw;q=often, en']],
    ['en', 'Swahili with less weight', ['sw;q=0.8, en;q=0.9', 'sw-KE;q=0.1, en-GB;q=0.2']],
    ['en', 'nothing', ['', ',;,=;q']],
    ['sw', 'Swahili', ['sw', 'SW', 'sw-KE', 'sw-TZ,sw;q=0.9,en;q=0.8', 'fr, sw;q=0.2', '*;q=0.1, sw']],
    ['sw', 'English with less weight', ['en;q=0.8, sw;q=0.9', 'en;q=0.123,sw;q=0.124', 'sw;Q=0.9, en;Q=0.1']],
    ['sw', 'white space in weights', ['en ; q=0.1 , sw ; q=0.2']],
    ['sw', 'English refused', ['en;q=0, sw;q=0.001', 'en;q=often, sw']],
    ['sw', 'two regions', ['sw;q=0.1, en;q=0.5, sw-KE;q=0.7', 'sw-KE;q=0.7, en;q=0.5, sw;q=0.1']],
  ])('leads to %s when it asks for %s', async (language, _, values) => {
    for (const value of values) {
      const headers = { 'accept-language': value };
      const response = await world.request('/api/music/models', { headers });
      expect(await envelopeMessage(response, 401), value).toBe(messages[language].notSignedIn);
      expect(response.headers.get('content-language'), value).toBe(language);
    }
  });

  it('leads to English when it is absent', async () => {
    // Bun's fetch sends no Accept-Language of its own.
    const response = await world.request('/api/music/models');
    expect(await envelopeMessage(response, 401)).toBe(messages.en.notSignedIn);
    expect(response.headers.get('content-language')).toBe('en');
  });

  const ORDER = { model: 'music-1', prompt: 'a tune', music_length_ms: 30_000 };
  const JSON_TYPE = { 'content-type': 'application/json' };

  it.each<[where: string, status: number, path: string, options: RequestOptions, MessageKey]>([
    ['the origin is refused', 403, '/api/music/models', { origin: null }, 'originNotAllowed'],
    [
      'the body is malformed',
      400,
      '/api/auth/idp',
      { method: 'POST', body: '{', headers: JSON_TYPE },
      'bodyMalformed',
    ],
    ['a generation is late', 502, '/api/music/generate', { json: ORDER }, 'generationTimeout'],
  ])('counts where %s', async (_, status, path, { headers, ...options }, key) => {
    await using hasty = startWorld({ TIMEOUT_STREAM_MS: '1000' });
    hasty.upstream.on('POST /v1/music', silence);
    const all = { ...headers, 'accept-language': 'sw' };
    const response = await hasty.request(path, { cookie: SIGNED_IN, ...options, headers: all });
    expect(await envelopeMessage(response, status)).toBe(messages.sw[key]);
    expect(response.headers.get('content-language')).toBe('sw');
    expect(hasty.upstream.calls).toEqual(status === 502 ? ['POST /v1/music'] : []);
    // The people who run the gateway read its log, whatever its users speak.
    const expected = status === 502 ? [expect.stringContaining('"reason":"generationTimeout"')] : [];
    expect(hasty.log).toEqual(expected);
  });

  it("does not label the upstream's own text, whose language nobody knows", async () => {
    world.upstream.on('POST /v1/music', reply(402, { message: 'Plus de crédits.' }));
    const headers = { 'accept-language': 'sw' };
    const response = await world.request('/api/music/generate', { cookie: SIGNED_IN, json: ORDER, headers });
    expect(await envelopeMessage(response, 402)).toBe('Plus de crédits.');
    expect(response.headers.get('content-language')).toBeNull();
  });

  it('does not label responses that hold no text for people', async () => {
    const response = await world.request('/api/auth/session', { headers: { 'accept-language': 'sw' } });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-language')).toBeNull();
  });
});

describe('the catalogue of messages', () => {
  const swahili = new Map(Object.entries(messages.sw));

  it.each(Object.entries(messages.en))(
    'has %s in both languages, with the same numbers and fields',
    (key, en) => {
      const sw = swahili.get(key) ?? '';
      const factsOf = (text: string) => text.match(/\d+|[a-z]+_[a-z_]+/g)?.toSorted() ?? [];
      expect(en.trim()).not.toBe('');
      expect(sw.trim()).not.toBe('');
      expect(en).not.toBe(sw);
      expect(factsOf(sw)).toEqual(factsOf(en));
    },
  );
});
