import { describe, expect, it } from 'bun:test';
import { messages } from '../../src/gateway/http/messages.ts';
import { envelopeMessage, SIGNED_IN, startWorld } from '../support/world.ts';

describe('Accept-Language', () => {
  it.each([
    ['en'],
    ['en-GB,en;q=0.9'],
    ['fr'],
    ['*'],
    ['sw;q=0'],
    ['sw;q=0, *'],
    ['sw;q=0.8, en;q=0.9'],
    ['sw-KE;q=0.1, en-GB;q=0.2'],
    ['sw;q=often, en'],
    ['swg'],
    ['swahili'],
    ['x-sw'],
    ['fr;sw'],
    [''],
    [',;,=;q'],
  ])('of %j is answered in English', async (acceptLanguage) => {
    await using world = startWorld();
    const headers = { 'accept-language': acceptLanguage };
    const response = await world.request('/api/music/models', { headers });
    expect(await envelopeMessage(response, 401)).toBe(messages.notSignedIn.en);
    expect(response.headers.get('content-language')).toBe('en');
  });

  it.each([
    ['sw'],
    ['SW'],
    ['sw-KE'],
    ['sw-TZ,sw;q=0.9,en;q=0.8'],
    ['en;q=0.8, sw;q=0.9'],
    ['en;q=0.123,sw;q=0.124'],
    ['en ; q=0.1 , sw ; q=0.2'],
    ['en;q=0, sw;q=0.001'],
    ['fr, sw;q=0.2'],
    ['*;q=0.1, sw'],
    ['sw;q=0.1, en;q=0.5, sw-KE;q=0.7'],
    ['sw-KE;q=0.7, en;q=0.5, sw;q=0.1'],
    ['en;q=often, sw'],
    ['sw;Q=0.9, en;Q=0.1'],
  ])('of %j is answered in Swahili', async (acceptLanguage) => {
    await using world = startWorld();
    const headers = { 'accept-language': acceptLanguage };
    const response = await world.request('/api/music/models', { headers });
    expect(await envelopeMessage(response, 401)).toBe(messages.notSignedIn.sw);
    expect(response.headers.get('content-language')).toBe('sw');
  });

  it('is English when there is none', async () => {
    await using world = startWorld();
    // Bun's fetch sends no Accept-Language of its own.
    const response = await world.request('/api/music/models');
    expect(await envelopeMessage(response, 401)).toBe(messages.notSignedIn.en);
    expect(response.headers.get('content-language')).toBe('en');
  });

  it('counts where the origin is refused', async () => {
    await using world = startWorld();
    const response = await world.request('/api/music/models', {
      origin: null,
      headers: { 'accept-language': 'sw' },
    });
    expect(await envelopeMessage(response, 403)).toBe(messages.originNotAllowed.sw);
    expect(response.headers.get('content-language')).toBe('sw');
  });

  it('counts where nothing is found', async () => {
    await using world = startWorld();
    const response = await world.request('/api/nothing', { headers: { 'accept-language': 'sw' } });
    expect(await envelopeMessage(response, 404)).toBe(messages.notFound.sw);
    expect(response.headers.get('content-language')).toBe('sw');
  });

  it('counts where a field is not valid', async () => {
    await using world = startWorld();
    const response = await world.request('/api/music/generate', {
      cookie: SIGNED_IN,
      json: { model: 'music-1', prompt: '', music_length_ms: 30_000 },
      headers: { 'accept-language': 'sw' },
    });
    expect(await envelopeMessage(response, 400)).toBe(messages.promptInvalid.sw);
    expect(response.headers.get('content-language')).toBe('sw');
    expect(world.upstream.calls).toEqual([]);
  });

  it('counts where the body is malformed', async () => {
    await using world = startWorld();
    const response = await world.request('/api/auth/idp', {
      method: 'POST',
      headers: { 'accept-language': 'sw', 'content-type': 'application/json' },
      body: '{',
    });
    expect(await envelopeMessage(response, 400)).toBe(messages.bodyMalformed.sw);
    expect(response.headers.get('content-language')).toBe('sw');
  });

  it('counts where the upstream is late with a generation', async () => {
    await using world = startWorld({ TIMEOUT_STREAM_MS: '50' });
    const never = Promise.withResolvers<Response>();
    world.upstream.on('POST /v1/music', () => never.promise);
    const response = await world.request('/api/music/generate', {
      cookie: SIGNED_IN,
      json: { model: 'music-1', prompt: 'a tune', music_length_ms: 30_000 },
      headers: { 'accept-language': 'sw' },
    });
    expect(await envelopeMessage(response, 502)).toBe(messages.generationTimeout.sw);
    expect(response.headers.get('content-language')).toBe('sw');
    // A log is read by the people who run the gateway, whatever its users speak.
    expect(world.log).toEqual([expect.stringContaining('"reason":"generationTimeout"')]);
    never.resolve(new Response());
  });

  it("does not label the upstream's own text, whose language nobody knows", async () => {
    await using world = startWorld();
    world.upstream.on('POST /v1/music', () =>
      Response.json({ message: 'Plus de crédits.' }, { status: 402 }),
    );
    const response = await world.request('/api/music/generate', {
      cookie: SIGNED_IN,
      json: { model: 'music-1', prompt: 'a tune', music_length_ms: 30_000 },
      headers: { 'accept-language': 'sw' },
    });
    expect(await envelopeMessage(response, 402)).toBe('Plus de crédits.');
    expect(response.headers.get('content-language')).toBeNull();
  });

  it('does not label answers that hold no text for people', async () => {
    await using world = startWorld();
    const response = await world.request('/api/auth/session', { headers: { 'accept-language': 'sw' } });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-language')).toBeNull();
  });
});

describe('the catalogue of messages', () => {
  it.each(Object.entries(messages))('says %s in English and in Swahili', (_, { en, sw }) => {
    const english: string = en;
    expect(english.trim()).not.toBe('');
    expect(sw.trim()).not.toBe('');
    expect(english).not.toBe(sw);
  });

  it.each(Object.entries(messages))(
    'names the same numbers and fields in both languages of %s',
    (_, { en, sw }) => {
      expect(sw.match(/\d+|[a-z]+_[a-z_]+/g)?.toSorted() ?? []).toEqual(
        en.match(/\d+|[a-z]+_[a-z_]+/g)?.toSorted() ?? [],
      );
    },
  );
});
