import { expect, it, spyOn } from 'bun:test';
import { CALL_BYTES, KEEPS_UP_BYTES } from '../../../src/gateway/admission/prices.ts';
import { connectionKey, sendQueues } from '../../../src/gateway/admission/send-queues.ts';
import { eventually } from '../../support/eventually.ts';
import { RawConnection } from '../../support/raw-http.ts';
import { releasedBody } from '../../support/released-body.ts';
import { itWith, LINUX } from '../../support/requirements.ts';
import { GENERATE, OWN_FORM, PUBLIC, proxied, type RouteCase } from '../../support/routes.ts';
import { pair, REFRESH } from '../../support/session-calls.ts';
import { rawText } from '../../support/shared-world.ts';
import { ACCESS_ONLY, REFRESH_ONLY, startWorld, type World } from '../../support/world.ts';

const MUSIC = GENERATE.calls.join();
const CANCELLED = 'is cancelled when the client disconnects';

// How it breaks off: faults/faulty-upstream.test.ts. A client that leaves before it: every-end.test.ts. How long it may be silent: unit/observed-body.test.ts.
it.each([
  // What a client leaves that has paid: below.
  { ...GENERATE, end: 'ends with it' },
  { ...proxied('GET'), end: CANCELLED },
  { ...PUBLIC, end: CANCELLED },
])(
  'the body for $name arrives as the upstream produces it, and $end',
  async ({ path, options, calls, end }) => {
    await using world = startWorld();
    const body = releasedBody();
    // Server-sent events pass as they are encoded, and none waits for the next one.
    const headers = { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' };
    world.upstream.on(calls.join(), () => new Response(body.stream, { headers }));
    body.release('first');
    const client = new AbortController();
    const request = { ...options, decompress: false, signal: client.signal };
    const response = await world.request(path, request);
    const { headers: own } = response;
    expect([own.get('content-encoding'), own.has('content-length')]).toEqual(['gzip', false]);
    const reader = response.body?.getReader();
    const read = async () => Buffer.from((await reader?.read())?.value ?? '').toString();
    expect(await read()).toBe('first');
    for (const event of ['data: 1\n\n', ': a comment\n\n']) {
      body.release(event);
      expect(await read()).toBe(event);
    }
    if (end === CANCELLED) {
      client.abort();
      return body.cancelled;
    }
    body.end();
    expect(await read()).toBe('');
  },
);

// Such a client takes the end of the connection for that of the body.
it('a body that breaks off resets the connection of a client of HTTP/1.0', async () => {
  await using world = startWorld();
  const body = releasedBody();
  world.upstream.on(PUBLIC.calls.join(), () => new Response(body.stream));
  body.release('first');
  const client = new RawConnection(world.port);
  client.send(rawText(`GET ${PUBLIC.path}`, { version: 'HTTP/1.0' }));
  while (!client.received.includes('first')) await client.changed(1000);
  await world.upstream.stop();
  await client.closed;
  expect(client.isBroken).toBe(true);
  expect(await world.line({ brokenBody: true })).toMatchObject({ level: 'warn' });
});

itWith(
  [LINUX],
  'a streamed body is watched by the connection of its client, as the kernel lists it',
  async () => {
    await using world = startWorld();
    const body = releasedBody();
    const { path, options, calls } = proxied('GET');
    world.upstream.on(calls.join(), () => new Response(body.stream));
    body.release('first');
    using added = spyOn(world.admission.watch, 'add');
    const response = await world.request(path, options);
    const connection = added.mock.lastCall?.[0].connection;
    expect(connection && (await sendQueues()).has(connectionKey(connection))).toBeTrue();
    await response.body?.cancel();
    await body.cancelled;
  },
);

/** A track whose first piece is sent at once. */
function startTrack() {
  const released = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<'read to its end' | 'cancelled'>();
  // More than the kernel buffers for a connection: all of it is sent only when somebody reads it.
  let pieces = 300;
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (pieces === 299) await released.promise;
      if (pieces-- > 0) return controller.enqueue(new Uint8Array(64 * 1024));
      controller.close();
      ended.resolve('read to its end');
    },
    cancel: () => ended.resolve('cancelled'),
  });
  return { response: new Response(stream), release: () => released.resolve(), ended: ended.promise };
}

/**
 * Orders a track and disconnects, and returns when that was. Once later requests have been served, the gateway has noticed
 * it.
 */
async function leave(
  world: World,
  { path, options, calls }: RouteCase,
  cookie: string,
  whenStreaming: boolean,
): Promise<number> {
  const client = new AbortController();
  const ordered = world.request(path, { ...options, cookie, signal: client.signal });
  await world.upstream.arrived(calls.join());
  if (whenStreaming) await (await ordered).body?.getReader().read();
  const leftAt = performance.now();
  client.abort();
  await ordered.catch(() => {});
  for (let request = 0; request < 3; request++) await world.request('/api/health');
  return leftAt;
}

it.each([
  { clientGone: 'streaming', cookie: ACCESS_ONLY, generation: GENERATE },
  { clientGone: 'streaming', cookie: REFRESH_ONLY, generation: GENERATE },
  { clientGone: 'waiting', cookie: ACCESS_ONLY, generation: GENERATE },
  { clientGone: 'waiting', cookie: REFRESH_ONLY, generation: GENERATE },
  { clientGone: 'streaming', cookie: ACCESS_ONLY, generation: OWN_FORM },
  { clientGone: 'waiting', cookie: REFRESH_ONLY, generation: OWN_FORM },
])(
  '$generation.name whose client disconnects while $clientGone is read to its end, and in flight until then: $cookie',
  async ({ clientGone, cookie, generation }) => {
    const isStreaming = clientGone === 'streaming';
    await using world = startWorld();
    const { streams, ledger, perSession } = world.admission;
    const track = startTrack();
    const head = Promise.withResolvers<Response>();
    world.upstream.on(REFRESH, () => Response.json(pair(2)));
    world.upstream.on(generation.calls.join(), () => head.promise);
    if (isStreaming) head.resolve(track.response);
    await leave(world, generation, cookie, isStreaming);
    head.resolve(track.response);
    await eventually(() => ledger.inUse >= CALL_BYTES + KEEPS_UP_BYTES, 'the first byte');
    expect([streams.inUse, perSession.size]).toEqual([1, 1]);
    expect(world.lines.filter(({ method }) => method === 'POST')).toEqual([]);

    track.release();
    expect(await track.ended).toBe('read to its end');
    const line = await world.line({ method: 'POST' });
    const upstream = expect.arrayContaining([expect.objectContaining({ call: 'music', outcome: 200 })]);
    expect(line).toMatchObject({ level: 'info', clientGone, upstream });
    expect(line).not.toContainAnyKeys(['brokenBody', 'cause', 'reason']);
    await eventually(() => !streams.inUse, 'the end of the generation');
    // What is left is the record of a refresh.
    expect([perSession.size, ledger.inUse < CALL_BYTES]).toEqual([0, true]);
  },
);

it('a generation whose client has disconnected is cancelled upstream after TIMEOUT_STREAM_MS', async () => {
  await using world = startWorld({ TIMEOUT_STREAM_MS: '1000' });
  const track = startTrack();
  world.upstream.on(MUSIC, () => track.response);
  const leftAt = await leave(world, GENERATE, ACCESS_ONLY, true);
  expect(await track.ended).toBe('cancelled');
  // Timers may be early by a little. Its silence would end it after 60 s.
  expect(performance.now() - leftAt).toBeWithin(950, 50_000);
});
