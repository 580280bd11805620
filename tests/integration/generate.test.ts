import { describe, expect, it } from 'bun:test';
import { messages } from '../../src/gateway/http/messages.ts';
import { rawRequest } from '../support/raw-http.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import {
  ACCESS_ONLY,
  envelopeMessage,
  ORIGIN,
  REFRESH_ONLY,
  type RequestOptions,
  SIGNED_IN,
  startWorld,
  type World,
} from '../support/world.ts';

const MUSIC = 'POST /v1/music';
const REFRESH = 'POST /v1/auth/refresh';
const TRACK = { model: 'music-1', prompt: 'a calm taarab tune', music_length_ms: 30_000 };
const NEW_PAIR = { access_token: 'access-2', refresh_token: 'refresh-2', expires_in: 600 };
const NEW_COOKIES = [
  'svc_music_access=access-2; Path=/; Max-Age=600; HttpOnly; SameSite=Lax',
  'svc_music_refresh=refresh-2; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax',
];
const LIMITS = {
  'retry-after': '17',
  ratelimit: '"default";r=0;t=17',
  'ratelimit-policy': '"default";q=10;w=60',
  'x-ratelimit-remaining': '0',
  'x-ratelimit-used': '10',
};
/** Nothing listens there. */
const CLOSED = 'http://127.0.0.1:1';

describe('POST /api/music/generate', () => {
  it('sends the upstream exactly the five keys, with the access token and nothing of the browser', async () => {
    await using world = startWorld();
    scriptMusic(world);
    const response = await generate(world, TRACK, {
      cookie: `${SIGNED_IN}; theme=dark`,
      headers: { accept: 'audio/*', authorization: 'Bearer from-the-browser' },
    });
    expect(response.status).toBe(200);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([MUSIC]);
    const { headers, body } = world.upstream.last(MUSIC);
    expect(JSON.parse(body)).toStrictEqual({ ...TRACK, force_instrumental: false, is_public: false });
    expect(headers.get('content-type')).toBe('application/json');
    expect(headers.get('accept')).toBe('application/json');
    expect(headers.get('authorization')).toBe('Bearer access-1');
    expect(headers.get('cookie')).toBeNull();
    expect(headers.get('origin')).toBeNull();
    expect(world.log).toEqual([]);
  });

  it('asks for no compression, because the audio is passed on as it comes', async () => {
    await using world = startWorld();
    scriptMusic(world);
    const response = await generate(world, TRACK, { headers: { 'accept-encoding': 'gzip' } });
    expect(response.status).toBe(200);
    expect(world.upstream.last(MUSIC).headers.get('accept-encoding')).toBe('identity');
  });

  it('trims model and prompt', async () => {
    await using world = startWorld();
    scriptMusic(world);
    const response = await generate(world, {
      ...TRACK,
      model: '\t music-1 ',
      prompt: ' \n two  words\u00a0\r\n',
    });
    expect(response.status).toBe(200);
    expect(sentPayload(world)).toMatchObject({ model: 'music-1', prompt: 'two  words' });
  });

  it('keeps every character of the prompt', async () => {
    const prompt = '"Ngoma" \\ \u{1f941}\u0000\u2028 é e\u0301\n\t</script>';
    await using world = startWorld();
    scriptMusic(world);
    const response = await generate(world, { ...TRACK, prompt });
    expect(response.status).toBe(200);
    expect(sentPayload(world)).toMatchObject({ prompt });
  });

  it('passes the flags on as true when they are true', async () => {
    await using world = startWorld();
    scriptMusic(world);
    const response = await generate(world, { ...TRACK, force_instrumental: true, is_public: true });
    expect(response.status).toBe(200);
    expect(sentPayload(world)).toStrictEqual({ ...TRACK, force_instrumental: true, is_public: true });
  });

  it('tells the two flags apart', async () => {
    await using world = startWorld();
    scriptMusic(world);
    const response = await generate(world, { ...TRACK, is_public: true });
    expect(response.status).toBe(200);
    expect(sentPayload(world)).toMatchObject({ force_instrumental: false, is_public: true });
  });

  it.each(['false', 'null', '1', '"true"', '" true "', '"yes"', '{}', '[true]'])(
    'takes a flag of %s for false',
    async (flag) => {
      await using world = startWorld();
      scriptMusic(world);
      const response = await generateFrom(world, `"force_instrumental":${flag},"is_public":${flag}`);
      expect(response.status).toBe(200);
      expect(sentPayload(world)).toStrictEqual({ ...TRACK, force_instrumental: false, is_public: false });
    },
  );

  it('takes no notice of other keys', async () => {
    await using world = startWorld();
    scriptMusic(world);
    const response = await generate(world, {
      ...TRACK,
      price: 0,
      user_id: 'somebody-else',
      data: { is_public: true },
      isPublic: true,
      error: { message: 'x' },
    });
    expect(response.status).toBe(200);
    expect(sentPayload(world)).toStrictEqual({ ...TRACK, force_instrumental: false, is_public: false });
  });

  it.each([
    '"__proto__":{"is_public":true,"force_instrumental":true}',
    '"constructor":{"prototype":{"is_public":true,"force_instrumental":true}}',
    '"toString":1,"valueOf":1,"hasOwnProperty":1,"toJSON":1,"then":1',
  ])('takes nothing from the keys %s', async (keys) => {
    await using world = startWorld();
    scriptMusic(world);
    const response = await generateFrom(world, keys);
    expect(response.status).toBe(200);
    expect(sentPayload(world)).toStrictEqual({ ...TRACK, force_instrumental: false, is_public: false });
  });

  it('finds no fields in a __proto__ key', async () => {
    await using world = startWorld();
    const response = await send(world, 'application/json', `{"__proto__":${JSON.stringify(TRACK)}}`);
    expect(await envelopeMessage(response, 400)).toBe(messages.modelInvalid.en);
    expect(world.upstream.calls).toEqual([]);
  });

  it.each(['0d3c7a52-5a0b-4f0e-9f0c-6a1f3d1b9c11', ' spaced  inside ', '"quoted", comma', 'caf\xe9'])(
    'forwards the Idempotency-Key %j unchanged',
    async (key) => {
      await using world = startWorld();
      scriptMusic(world);
      const response = await generate(world, TRACK, { headers: { 'idempotency-key': key } });
      expect(response.status).toBe(200);
      // HTTP itself takes the blanks around a value away.
      expect(world.upstream.last(MUSIC).headers.get('idempotency-key')).toBe(key.trim());
    },
  );

  it('makes up no Idempotency-Key', async () => {
    await using world = startWorld();
    scriptMusic(world);
    const response = await generate(world, TRACK);
    expect(response.status).toBe(200);
    expect(world.upstream.last(MUSIC).headers.has('idempotency-key')).toBe(false);
  });
});

describe('POST /api/music/generate validating', () => {
  it.each([
    ['a model of 1 character', { model: 'm' }],
    ['a model of 120 characters', { model: 'm'.repeat(120) }],
    ['a prompt of 1 character', { prompt: 'p' }],
    ['a prompt of 4100 characters', { prompt: 'p'.repeat(4100) }],
    ['3000 ms', { music_length_ms: 3000 }],
    ['600000 ms', { music_length_ms: 600_000 }],
  ])('accepts %s', async (_, fields) => {
    await using world = startWorld();
    scriptMusic(world);
    const response = await generate(world, { ...TRACK, ...fields });
    expect(response.status).toBe(200);
    expect(sentPayload(world)).toMatchObject(fields);
  });

  it('counts the characters that are left after trimming', async () => {
    const model = 'm'.repeat(120);
    const prompt = 'p'.repeat(4100);
    await using world = startWorld();
    scriptMusic(world);
    const response = await generate(world, { ...TRACK, model: ` ${model}\n`, prompt: `\t${prompt} ` });
    expect(response.status).toBe(200);
    expect(sentPayload(world)).toMatchObject({ model, prompt });
  });

  it.each(['3e4', '30000.0', '300e2', '0.3E5'])('accepts the whole number %s', async (number) => {
    await using world = startWorld();
    scriptMusic(world);
    const response = await generateFrom(world, `"music_length_ms":${number}`);
    expect(response.status).toBe(200);
    expect(sentPayload(world)).toMatchObject({ music_length_ms: 30_000 });
  });

  it.each([
    ['missing', undefined],
    ['empty', ''],
    ['blank', ' \t\n'],
    ['of 121 characters', 'm'.repeat(121)],
    ['null', null],
    ['a number', 1],
    ['an array', ['music-1']],
    ['an object', { length: 1 }],
  ])('refuses a model that is %s', async (_, model) => {
    await using world = startWorld();
    const response = await generate(world, { ...TRACK, model });
    expect(await envelopeMessage(response, 400)).toBe(messages.modelInvalid.en);
    expect(world.upstream.calls).toEqual([]);
    expect(world.log).toEqual([]);
  });

  it.each([
    ['missing', undefined],
    ['empty', ''],
    ['blank', ' \t\n'],
    ['of 4101 characters', 'p'.repeat(4101)],
    ['null', null],
    ['a number', 1],
    ['an array', ['a tune']],
    ['true', true],
  ])('refuses a prompt that is %s', async (_, prompt) => {
    await using world = startWorld();
    const response = await generate(world, { ...TRACK, prompt });
    expect(await envelopeMessage(response, 400)).toBe(messages.promptInvalid.en);
    expect(world.upstream.calls).toEqual([]);
    expect(world.log).toEqual([]);
  });

  it.each([
    '2999',
    '600001',
    '3000.5',
    '2999.9999',
    '0',
    '-30000',
    '1e999',
    '"30000"',
    '""',
    'null',
    'true',
    '[30000]',
    '{}',
  ])('refuses a music_length_ms of %s', async (length) => {
    await using world = startWorld();
    const response = await generateFrom(world, `"music_length_ms":${length}`);
    expect(await envelopeMessage(response, 400)).toBe(messages.musicLengthInvalid.en);
    expect(world.upstream.calls).toEqual([]);
    expect(world.log).toEqual([]);
  });

  it('refuses a missing music_length_ms', async () => {
    await using world = startWorld();
    const response = await generate(world, { model: 'music-1', prompt: 'a tune' });
    expect(await envelopeMessage(response, 400)).toBe(messages.musicLengthInvalid.en);
    expect(world.upstream.calls).toEqual([]);
  });

  it.each([
    ['model', { model: 'secret'.repeat(30) }, ['model', '120']],
    ['prompt', { prompt: 'secret'.repeat(1000) }, ['prompt', '4100']],
    ['music_length_ms', { music_length_ms: 'secret' }, ['music_length_ms', '3000', '600000']],
  ])('names %s and its rule, and does not repeat what was sent', async (_, fields, parts) => {
    await using world = startWorld();
    const response = await generate(world, { ...TRACK, ...fields });
    const message = await envelopeMessage(response, 400);
    for (const part of parts) expect(message).toContain(part);
    expect(message).not.toContain('secret');
  });

  it.each(['{', '', '{"model":}', '{"music_length_ms":NaN}', `${JSON.stringify(TRACK)}{}`])(
    'refuses the malformed JSON %j',
    async (body) => {
      await using world = startWorld();
      const response = await send(world, 'application/json', body);
      expect(await envelopeMessage(response, 400)).toBe(messages.bodyMalformed.en);
      expect(world.upstream.calls).toEqual([]);
      expect(world.log).toEqual([]);
    },
  );

  it.each(['null', 'true', '30000', '"a tune"', '[]', JSON.stringify([TRACK])])(
    'refuses %s, which is JSON but not an object',
    async (body) => {
      await using world = startWorld();
      const response = await send(world, 'application/json', body);
      expect(await envelopeMessage(response, 400)).toBe(messages.bodyNotAnObject.en);
      expect(world.upstream.calls).toEqual([]);
    },
  );

  it('refuses a body without a content type', async () => {
    await using world = startWorld();
    const body = Buffer.from(JSON.stringify(TRACK));
    const response = await world.request('/api/music/generate', { method: 'POST', cookie: SIGNED_IN, body });
    expect(await envelopeMessage(response, 400)).toBe(messages.bodyNotAnObject.en);
    expect(world.upstream.calls).toEqual([]);
  });

  it('refuses a request without a body', async () => {
    await using world = startWorld();
    const response = await world.request('/api/music/generate', { method: 'POST', cookie: SIGNED_IN });
    expect(await envelopeMessage(response, 400)).toBe(messages.bodyNotAnObject.en);
    expect(world.upstream.calls).toEqual([]);
  });

  it.each(['text/plain', 'application/octet-stream', 'multipart/form-data; boundary=x', 'text/json'])(
    'refuses a body sent as %s',
    async (contentType) => {
      await using world = startWorld();
      const response = await send(world, contentType, JSON.stringify(TRACK));
      expect(await envelopeMessage(response, 400)).toBe(messages.bodyNotAnObject.en);
      expect(world.upstream.calls).toEqual([]);
      expect(world.log).toEqual([]);
    },
  );

  it('refuses a form, which cannot hold a number', async () => {
    await using world = startWorld();
    const form = 'model=music-1&prompt=a+tune&music_length_ms=30000';
    const response = await send(world, 'application/x-www-form-urlencoded', form);
    expect(await envelopeMessage(response, 400)).toBe(messages.musicLengthInvalid.en);
    expect(world.upstream.calls).toEqual([]);
  });

  it.each([
    ['missing', null],
    ['not allowed', 'https://elsewhere.test'],
    ['a longer one', `${ORIGIN}.elsewhere.test`],
  ])('answers 403 when the Origin is %s', async (_, origin) => {
    await using world = startWorld();
    const response = await generate(world, TRACK, { origin });
    expect(await envelopeMessage(response, 403)).toBe(messages.originNotAllowed.en);
    expect(world.upstream.calls).toEqual([]);
  });

  it.each([
    ['a good request', TRACK],
    ['a request that is not valid either', { ...TRACK, model: '' }],
  ])('answers 401 to %s without a session', async (_, track) => {
    await using world = startWorld();
    const response = await world.request('/api/music/generate', { json: track });
    expect(await envelopeMessage(response, 401)).toBe(messages.notSignedIn.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
  });
});

describe('POST /api/music/generate answering', () => {
  it('passes on the audio bytes and the headers of the contract, and no other', async () => {
    const audio = randomBytes(1000);
    await using world = startWorld();
    world.upstream.on(
      MUSIC,
      () =>
        new Response(audio, {
          headers: {
            'content-type': 'audio/wav',
            'content-disposition': 'attachment; filename="tune.wav"',
            'x-generation-id': 'generation-1',
            'x-music-creation-id': 'creation-1',
            'cache-control': 'public, max-age=60',
            'set-cookie': 'upstream=1',
            'access-control-allow-origin': '*',
            etag: '"1"',
            'x-upstream': 'node-7',
          },
        }),
    );
    const response = await generate(world, TRACK);
    expect(response.status).toBe(200);
    expect(Buffer.from(await response.bytes()).equals(audio)).toBe(true);
    const { headers } = response;
    expect(headers.get('content-type')).toBe('audio/wav');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('content-disposition')).toBe('attachment; filename="tune.wav"');
    expect(headers.get('x-generation-id')).toBe('generation-1');
    expect(headers.get('x-music-creation-id')).toBe('creation-1');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(headers.getSetCookie()).toEqual([]);
    expect(headers.get('etag')).toBeNull();
    expect(headers.get('x-upstream')).toBeNull();
  });

  it('lets the studio read the three forwarded headers', async () => {
    await using world = startWorld();
    scriptMusic(world);
    const response = await generate(world, TRACK);
    const exposed = response.headers.get('access-control-expose-headers')?.toLowerCase().split(', ');
    expect(exposed).toEqual(
      expect.arrayContaining(['content-disposition', 'x-generation-id', 'x-music-creation-id']),
    );
  });

  it('calls it audio/mpeg, and makes up no other header, when the upstream says nothing', async () => {
    await using upstream = await startRawUpstream((socket) =>
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\naudio'),
    );
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await generate(world, TRACK);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('audio/mpeg');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.has('content-disposition')).toBe(false);
    expect(response.headers.has('x-generation-id')).toBe(false);
    expect(response.headers.has('x-music-creation-id')).toBe(false);
    expect(await response.text()).toBe('audio');
  });

  it.each([201, 202])('makes a 200 of the upstream’s %i', async (status) => {
    await using world = startWorld();
    world.upstream.on(MUSIC, () => new Response('audio', { status, headers: { location: '/v1/music/1' } }));
    const response = await generate(world, TRACK);
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('audio');
    expect(response.headers.get('location')).toBeNull();
  });

  it('keeps the Content-Encoding of audio that comes encoded, and its bytes', async () => {
    const encoded = Bun.gzipSync(randomBytes(1000));
    await using world = startWorld();
    const headers = { 'content-type': 'audio/wav', 'content-encoding': 'gzip' };
    world.upstream.on(MUSIC, () => new Response(encoded, { headers }));
    const body = JSON.stringify(TRACK);
    const head = `Origin: ${ORIGIN}\r\nCookie: ${SIGNED_IN}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
    const response = await rawRequest(
      world.port,
      `POST /api/music/generate HTTP/1.1\r\nHost: x\r\n${head}\r\nConnection: close\r\n\r\n${body}`,
    );
    expect(response.status).toBe(200);
    expect(response.headers.get('content-encoding')).toBe('gzip');
    expect(Buffer.from(response.body, 'latin1').equals(encoded)).toBe(true);
    expect(world.upstream.last(MUSIC).headers.get('accept-encoding')).toBe('identity');
  });

  it('passes on every byte of a track that comes in many chunks', async () => {
    const chunks = Array.from({ length: 40 }, (_, index) => randomBytes(1 + index * 1601));
    await using world = startWorld();
    world.upstream.on(
      MUSIC,
      () =>
        new Response(
          (async function* () {
            yield* chunks;
          })(),
        ),
    );
    const response = await generate(world, TRACK);
    expect(response.status).toBe(200);
    expect(Buffer.from(await response.bytes()).equals(Buffer.concat(chunks))).toBe(true);
  });
});

describe('POST /api/music/generate when the upstream refuses', () => {
  it.each([
    ['error.message', { error: { message: 'No credits left.', code: 'x' } }, 'No credits left.'],
    ['message', { message: 'No credits left.', code: 'x' }, 'No credits left.'],
    ['error.message before message', { error: { message: 'Inner.' }, message: 'Outer.' }, 'Inner.'],
    ['message beside a text', { error: 'insufficient', message: 'No credits left.' }, 'No credits left.'],
    ['message beside a blank text', { error: { message: ' ' }, message: 'No credits.' }, 'No credits.'],
    ['message beside a number', { error: { message: 7 }, message: 'No credits.' }, 'No credits.'],
    [
      'its text as it is',
      { message: ' <b>Hakuna salio</b> \u{1f3b5}\n' },
      ' <b>Hakuna salio</b> \u{1f3b5}\n',
    ],
  ])('gives %s of a JSON answer', async (_, body, text) => {
    await using world = startWorld();
    world.upstream.on(MUSIC, () => Response.json(body, { status: 402 }));
    const response = await generate(world, TRACK);
    expect(await envelopeMessage(response, 402)).toBe(text);
    expect(response.headers.get('content-type')).toStartWith('application/json');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([MUSIC]);
  });

  it('reads the text whatever the content type says', async () => {
    await using world = startWorld();
    world.upstream.on(MUSIC, () => new Response('{"message":"No credits left."}', { status: 402 }));
    const response = await generate(world, TRACK);
    expect(await envelopeMessage(response, 402)).toBe('No credits left.');
  });

  it.each([
    ['neither text', '{"detail":"secret"}'],
    ['a text where an object should be', '{"error":"secret"}'],
    ['blank texts', '{"error":{"message":""},"message":" "}'],
    ['texts that are none', '{"error":{"message":["secret"]},"message":{"text":"secret"}}'],
    ['an array', '[{"message":"secret"}]'],
    ['null', 'null'],
    ['a string', '"secret"'],
    ['HTML', '<h1>secret</h1>'],
    ['JSON that breaks off', '{"message":"secret"'],
    ['nothing', ''],
    ['a __proto__ key', '{"__proto__":{"message":"secret"}}'],
    ['a huge body', JSON.stringify({ message: 'secret', padding: 'x'.repeat(1_000_000) })],
  ])('gives a text of its own when the answer holds %s', async (_, body) => {
    await using world = startWorld();
    world.upstream.on(
      MUSIC,
      () => new Response(body, { status: 422, headers: { 'content-type': 'application/json' } }),
    );
    const response = await generate(world, TRACK);
    expect(await envelopeMessage(response, 422)).toBe(messages.generationFailed.en);
    expect(world.upstream.calls).toEqual([MUSIC]);
    expect(world.log).toEqual([]);
  });

  it('does not wait for the rest of an answer that never ends', async () => {
    await using world = startWorld({ TIMEOUT_READ_MS: '50' });
    const answer = new TransformStream<Uint8Array, Uint8Array>();
    const writer = answer.writable.getWriter();
    world.upstream.on(MUSIC, () => {
      writer.write(Buffer.from('{"message":')).catch(() => {});
      return new Response(answer.readable, { status: 429 });
    });
    const response = await generate(world, TRACK);
    expect(await envelopeMessage(response, 429)).toBe(messages.generationFailed.en);
    await writer.abort().catch(() => {});
  });

  it.each([400, 402, 403, 404, 409, 413, 422, 429, 500, 502, 503, 504])(
    'passes on status %i and does not try again',
    async (status) => {
      await using world = startWorld();
      const headers = { 'set-cookie': 'upstream=1', location: '/v1/elsewhere' };
      world.upstream.on(MUSIC, () => new Response(null, { status, headers }));
      const response = await generate(world, TRACK);
      expect(response.status).toBe(status);
      expect(response.headers.getSetCookie()).toEqual([]);
      expect(response.headers.get('location')).toBeNull();
      expect(world.upstream.calls).toEqual([MUSIC]);
      expect(world.log).toHaveLength(status >= 500 ? 1 : 0);
    },
  );

  it.each([402, 429, 503])('passes on Retry-After and the rate limits with a %i', async (status) => {
    await using world = startWorld();
    world.upstream.on(MUSIC, () =>
      Response.json({ message: 'Wait.' }, { status, headers: { ...LIMITS, 'x-upstream': 'node-7' } }),
    );
    const response = await generate(world, TRACK);
    expect(Object.fromEntries(response.headers)).toMatchObject(LIMITS);
    expect(response.headers.get('access-control-expose-headers')).toContain('x-ratelimit-used');
    expect(response.headers.has('x-upstream')).toBe(false);
    expect(response.headers.has('proxy-status')).toBe(false);
    expect(await envelopeMessage(response, status)).toBe('Wait.');
    expect(world.upstream.calls).toEqual([MUSIC]);
  });

  it('does not log the text that the upstream meant for the user', async () => {
    await using world = startWorld();
    world.upstream.on(MUSIC, () => Response.json({ message: 'secret' }, { status: 500 }));
    const response = await generate(world, { ...TRACK, prompt: 'secret' });
    expect(await envelopeMessage(response, 500)).toBe('secret');
    expect(world.log).toHaveLength(1);
    expect(world.log.join()).not.toMatch(/secret|access-1|refresh-1/);
  });
});

describe('POST /api/music/generate when a success brings no track', () => {
  it.each([204, 205, 206, 300, 302, 304, 307])('makes a 502 of the upstream’s %i', async (status) => {
    await using world = startWorld();
    const body = status === 204 || status === 205 || status === 304 ? null : 'a part';
    const headers = { location: '/v1/elsewhere', 'set-cookie': 'upstream=1' };
    world.upstream.on(MUSIC, () => new Response(body, { status, headers }));
    const response = await generate(world, TRACK);
    expect(response.headers.get('proxy-status')).toBe('music-gateway; error=http_protocol_error');
    expect(response.headers.get('location')).toBeNull();
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(await envelopeMessage(response, 502)).toBe(messages.upstreamInvalid.en);
    expect(world.upstream.calls).toEqual([MUSIC]);
    expect(await world.line({ status: 502 })).toMatchObject({
      level: 'warn',
      reason: 'upstreamInvalid',
      upstream: [{ call: 'music', outcome: 'http_protocol_error' }],
    });
  });

  it.each([
    ['of no length', 'Content-Length: 0\r\n\r\n'],
    ['that ends without a byte', 'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['that ends with the connection', 'Connection: close\r\n\r\n'],
  ])('makes a 502 of a body %s', async (_, head) => {
    await using upstream = await startRawUpstream((socket) => socket.end(`HTTP/1.1 200 OK\r\n${head}`));
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await generate(world, TRACK);
    expect(response.headers.get('proxy-status')).toBe('music-gateway; error=http_protocol_error');
    expect(await envelopeMessage(response, 502)).toBe(messages.upstreamInvalid.en);
    expect(upstream.connections).toBe(1);
    expect(world.admission.streams.inUse).toBe(0);
  });

  it('cancels the body of a redirect', async () => {
    const closed = Promise.withResolvers<void>();
    await using upstream = await startRawUpstream((socket) => {
      socket.on('close', () => closed.resolve());
      socket.write('HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 9000000\r\n\r\nendless');
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    await envelopeMessage(await generate(world, TRACK), 502);
    await closed.promise;
  });
});

describe('POST /api/music/generate refreshing', () => {
  it('sends the same payload and Idempotency-Key again after a refresh, and sets the new cookies', async () => {
    await using world = startWorld();
    scriptMusicForNewToken(world);
    world.upstream.on(REFRESH, () => Response.json(NEW_PAIR));
    const response = await generate(world, TRACK, { headers: { 'idempotency-key': 'key-1' } });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('audio');
    expect(response.headers.get('content-type')).toBe('audio/ogg');
    expect(response.headers.getSetCookie()).toEqual(NEW_COOKIES);
    expect(world.upstream.calls).toEqual([MUSIC, REFRESH, MUSIC]);
    const [first, refresh, second] = world.upstream.received;
    expect(refresh?.body).toBe('{"refresh_token":"refresh-1"}');
    expect(refresh?.headers.has('idempotency-key')).toBe(false);
    expect(second?.body).toBe(first?.body ?? '');
    expect(second?.headers.get('idempotency-key')).toBe('key-1');
    expect(second?.headers.get('content-type')).toBe('application/json');
    expect(second?.headers.get('authorization')).toBe('Bearer access-2');
  });

  it('gives the text of a 401 when there is no refresh cookie', async () => {
    await using world = startWorld();
    scriptMusicForNewToken(world);
    const response = await generate(world, TRACK, { cookie: ACCESS_ONLY });
    expect(await envelopeMessage(response, 401)).toBe('expired');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([MUSIC]);
  });

  it('gives the text of a 401 after the refresh, with the new cookies', async () => {
    await using world = startWorld();
    world.upstream
      .on(MUSIC, () => Response.json({ message: 'not yours' }, { status: 401 }))
      .on(REFRESH, () => Response.json(NEW_PAIR));
    const response = await generate(world, TRACK);
    expect(await envelopeMessage(response, 401)).toBe('not yours');
    expect(response.headers.getSetCookie()).toEqual(NEW_COOKIES);
    expect(world.upstream.calls).toEqual([MUSIC, REFRESH, MUSIC]);
  });

  it('passes on a refusal after the refresh, with the new cookies', async () => {
    await using world = startWorld();
    world.upstream
      .on(MUSIC, () => Response.json({ message: 'No credits left.' }, { status: 402 }))
      .on(REFRESH, () => Response.json(NEW_PAIR));
    const response = await generate(world, TRACK, { cookie: REFRESH_ONLY });
    expect(await envelopeMessage(response, 402)).toBe('No credits left.');
    expect(response.headers.getSetCookie()).toEqual(NEW_COOKIES);
  });

  it('gives the text of the first 401, and leaves the cookies, when the refresh is not answered', async () => {
    await using world = startWorld({ TIMEOUT_SIGN_IN_MS: '50' });
    const never = Promise.withResolvers<Response>();
    scriptMusicForNewToken(world);
    world.upstream.on(REFRESH, () => never.promise);
    const response = await generate(world, TRACK);
    expect(await envelopeMessage(response, 401)).toBe('expired');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([MUSIC, REFRESH]);
    never.resolve(new Response());
  });
});

describe('POST /api/music/generate when the upstream is away', () => {
  it('advises to check the account activity when it does not answer in time', async () => {
    await using world = startWorld({ TIMEOUT_STREAM_MS: '50' });
    const never = Promise.withResolvers<Response>();
    world.upstream.on(MUSIC, () => never.promise);
    const response = await generate(world, TRACK);
    const message = await envelopeMessage(response, 502);
    expect(message).toBe(messages.generationTimeout.en);
    expect(message).toContain('check your account activity');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([MUSIC]);
    expect(world.log).toHaveLength(1);
    never.resolve(new Response());
  });

  it('answers 502 when it cannot be reached', async () => {
    await using world = startWorld({ UPSTREAM_URL: CLOSED });
    const response = await generate(world, TRACK);
    const message = await envelopeMessage(response, 502);
    expect(message).toBe(messages.upstreamUnreachable.en);
    expect(message).not.toContain('127.0.0.1');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.log).toHaveLength(1);
    expect(world.log.join()).not.toMatch(/access-1|refresh-1|taarab/);
  });

  it.each([
    ['closes the connection', ''],
    ['does not speak HTTP', '220 mail.test ESMTP\r\n\r\n'],
  ])('answers 502 when it %s, and does not try again', async (_, bytes) => {
    await using upstream = await startRawUpstream((socket) => socket.end(bytes));
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await generate(world, TRACK);
    expect(await envelopeMessage(response, 502)).toBe(messages.upstreamUnreachable.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(upstream.connections).toBe(1);
  });
});

function generate(world: World, track: unknown, options: RequestOptions = {}): Promise<Response> {
  return world.request('/api/music/generate', { cookie: SIGNED_IN, json: track, ...options });
}

/** A good request in which the last keys are written as given; a repeated key counts as the last one. */
function generateFrom(world: World, keys: string): Promise<Response> {
  return send(world, 'application/json', `${JSON.stringify(TRACK).slice(0, -1)},${keys}}`);
}

function send(world: World, contentType: string, body: string): Promise<Response> {
  const headers = { 'content-type': contentType };
  return world.request('/api/music/generate', { method: 'POST', cookie: SIGNED_IN, headers, body });
}

function scriptMusic({ upstream }: World): void {
  upstream.on(MUSIC, () => new Response('audio', { headers: { 'content-type': 'audio/ogg' } }));
}

/** Makes music for `access-2`; any other access token has expired. */
function scriptMusicForNewToken({ upstream }: World): void {
  upstream.on(MUSIC, ({ headers }) =>
    headers.get('authorization') === 'Bearer access-2'
      ? new Response('audio', { headers: { 'content-type': 'audio/ogg' } })
      : Response.json({ message: 'expired' }, { status: 401 }),
  );
}

function sentPayload({ upstream }: World): unknown {
  return JSON.parse(upstream.last(MUSIC).body);
}

function randomBytes(length: number): Buffer<ArrayBuffer> {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(length)));
}
