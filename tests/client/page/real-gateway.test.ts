import { expect, it } from 'bun:test';
import { createGatewayClient } from '../../../src/client/gateway-client.ts';
import { UnfinishedGenerations } from '../../../src/client/unfinished-generations.ts';
import { composeTrack } from '../../../src/demo/sandbox/audio/composition.ts';
import { renderWav, wavSize } from '../../../src/demo/sandbox/audio/wav.ts';
import { ORDER, signIn, startTestSandbox } from '../../support/sandbox-account.ts';
import { accept, ME, pair, REFRESH, reply, sentBack } from '../../support/session-calls.ts';
import { ORIGIN, SIGNED_IN, startWorld } from '../../support/world.ts';
import { openStorage, receive, rejection } from './gateway-stub.ts';
import { audio } from './track.ts';

/** `fetch` as a page of the web app has it: it keeps cookies, and reads only what CORS lets its scripts read. */
function fetchWith(first: string) {
  let cookie = first;
  return async (url: string, init: RequestInit) => {
    const headers = { ...Object.fromEntries(new Headers(init.headers)), origin: ORIGIN, cookie };
    const response = await fetch(url, { ...init, headers });
    cookie = sentBack(response) || cookie;
    if (response.headers.get('access-control-allow-origin') !== ORIGIN)
      throw new TypeError('Failed to fetch');
    const exposed = response.headers.get('access-control-expose-headers')?.toLowerCase().split(', ') ?? [];
    const readable = [...response.headers].filter(([name]) => ['content-type', ...exposed].includes(name));
    return new Response(response.body, { status: response.status, headers: readable });
  };
}

/** What the sandbox makes of the order. */
function madeTrack() {
  const { model, prompt, music_length_ms: lengthMs } = ORDER;
  return renderWav(composeTrack({ model, prompt, lengthMs }), 0, wavSize(lengthMs));
}

it('the client notices a refresh of a real gateway, and reads the ids of a track and the reasons of a failure', async () => {
  await using world = startWorld();
  const { upstream, url } = world;
  let refreshes = 0;
  const onRefresh = () => refreshes++;
  const client = createGatewayClient({ baseUrl: url, fetch: fetchWith(SIGNED_IN), onRefresh });
  upstream.on(REFRESH, reply(200, pair(2))).on(ME, accept('access-2', reply(200, 'Ada')));
  expect<unknown>(await client.session()).toEqual({ authenticated: true, profile: 'Ada' });
  expect(refreshes).toBe(1);

  const ids = { 'x-music-creation-id': 'c-7', 'x-generation-id': 'g-9', 'content-type': 'audio/wav' };
  upstream.on('POST /v1/music', () => new Response('audio', { headers: ids }));
  const generation = { creationId: 'c-7', generationId: 'g-9', contentType: 'audio/wav' };
  expect(await receive(client)).toMatchObject(generation);

  const header = 'Bearer error="insufficient_scope", max_age=300, acr_values="mfa"';
  const refusal = { status: 401, headers: { 'www-authenticate': header, 'retry-after': '7' } };
  upstream.on('POST /v1/music', () => Response.json({ message: 'Step up' }, refusal));
  const error = Object(await rejection(client.generate(ORDER)));
  const challenge = { error: 'insufficient_scope', acrValues: 'mfa', maxAgeSeconds: 300 };
  expect(error).toMatchObject({ message: 'Step up', retryAfterSeconds: 7, challenge });
  expect(world.lines.map(({ requestId }) => requestId)).toContain(error.requestId);
});

it('an upload whose token expires on its way is sent again, and arrives whole', async () => {
  await using world = startWorld();
  const { upstream, url } = world;
  const client = createGatewayClient({ baseUrl: url, fetch: fetchWith(SIGNED_IN) });
  const upload = 'POST /v1/music/references';
  upstream.on(ME, reply(200, {})).on(REFRESH, reply(200, pair(2)));
  upstream.on(upload, accept('access-2', reply(201)));
  const body = new Uint8Array(3_000_000).fill(7);
  expect((await client.upstream('/v1/music/references', { method: 'POST', body })).status).toBe(201);
  expect(upstream.calls).toEqual([ME, upload, REFRESH, ME, upload]);
  expect(Buffer.from(upstream.last(upload).bytes).equals(body)).toBe(true);
});

// 0: the connection breaks. The others: what proxies say that do not wait as long as a generation takes.
it.each([0, 504, 520, 522, 524])(
  'a track whose order gets %d, and whose audio breaks off in its middle, is whole in the end and paid for once',
  async (cut) => {
    await using sandbox = await startTestSandbox({ startingBalance: 100 });
    await using world = startWorld({ UPSTREAM_URL: sandbox.upstream.url });
    const { access_token, refresh_token } = await signIn(sandbox, 'Ada');
    const request = fetchWith(`svc_music_access=${access_token}; svc_music_refresh=${refresh_token}`);
    const sent: string[] = [];
    const client = createGatewayClient({
      baseUrl: world.url,
      async fetch(url, init) {
        const response = await request(url, init);
        sent.push(new URL(url).pathname);
        if (sent.length > 2) return response;
        const track = await response.bytes();
        if (sent.length === 1 && cut) return new Response('<h1>A timeout occurred</h1>', { status: cut });
        if (sent.length === 1) throw new TypeError('network error');
        return new Response(audio(track.subarray(0, track.length / 2), 'breaks'), response);
      },
    });
    const received = await receive(client, {}, ORDER);
    expect(received.states.join()).toBe('waiting,recovering,arriving,recovering,arriving,complete');
    expect(Buffer.from(madeTrack()).equals(received.audio)).toBe(true);
    const content = `/api/upstream/v1/music/creations/${received.creationId}/content`;
    expect(sent).toEqual(['/api/music/generate', '/api/music/generate', content]);
    expect(sandbox.upstream.counts().generations).toBe(1);
    expect(await client.upstreamData('/v1/billing/balance')).toMatchObject({ balance: 97 });
  },
);

it('a track that is taken up while it is made begins with what is there, in ranges, and is not ordered again', async () => {
  await using sandbox = await startTestSandbox({ pace: 2 });
  await using world = startWorld({ UPSTREAM_URL: sandbox.upstream.url });
  const { access_token, refresh_token } = await signIn(sandbox, 'Ada');
  const request = fetchWith(`svc_music_access=${access_token}; svc_music_refresh=${refresh_token}`);
  const statuses: number[] = [];
  const client = createGatewayClient({
    baseUrl: world.url,
    async fetch(url, init) {
      const response = await request(url, init);
      statuses.push(response.status);
      return response;
    },
  });
  const unfinished = new UnfinishedGenerations('ada', openStorage());
  const left = new AbortController();
  const { signal } = left;
  const { creationId } = await client.generate(ORDER, { idempotencyKey: 'key', unfinished, signal });
  // As far as a reload goes: it ends the connection, and the storage stays.
  const [kept] = unfinished.list();
  left.abort();
  if (kept) unfinished.keep(kept);

  const [taken] = await unfinished.takeUp(async ({ order, idempotencyKey }) => {
    const { body, ...generation } = await client.generate(order, { idempotencyKey, unfinished });
    const { status } = await client.creation(String(generation.creationId));
    const whole = await new Response(body).bytes();
    expect([status, Buffer.from(madeTrack()).equals(whole)]).toEqual(['generating', true]);
    return generation.creationId;
  });
  expect([taken, unfinished.list()]).toEqual([creationId, []]);
  expect(statuses).toEqual([200, 206, 200]);
  expect(sandbox.upstream.counts().generations).toBe(1);
});
