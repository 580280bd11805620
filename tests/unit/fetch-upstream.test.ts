import { describe, expect, it, jest, spyOn } from 'bun:test';
import type { Socket } from 'node:net';
import { overloaded } from '../../src/gateway/admission/pool.ts';
import { GatewayError } from '../../src/gateway/http/errors.ts';
import { RequestRecord } from '../../src/gateway/record/request-record.ts';
import { awaitFirstByte, Buffered } from '../../src/gateway/upstream/body-modes.ts';
import { fetchUpstream, type UpstreamCall } from '../../src/gateway/upstream/fetch-upstream.ts';
import { GeneratedTrack } from '../../src/gateway/upstream/generated-track.ts';
import { KeptConnections } from '../../src/gateway/upstream/kept-connections.ts';
import { PaidTrack } from '../../src/gateway/upstream/paid-track.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { RELAYED } from '../support/unread-body.ts';

const OK = 'HTTP/1.1 200 OK\r\n';
const LARGE = `${OK}Content-Length: 100000\r\n\r\n`;
const CALL = { name: 'proxy', method: 'GET', headers: {}, timeoutMs: 5000, bodyMode: RELAYED } as const;
const NO_ROOM = new Buffered(() => {
  throw overloaded('memory');
});
const NO_SHARE = new Buffered(() => {
  throw new GatewayError(429, 'sessionBusy');
});
const TRACK = new GeneratedTrack(new PaidTrack({ admitTrack: () => true }, 5000), 5000, true);

/** An upstream that responds to each call with these bytes, and then waits. */
async function start(bytes: string) {
  const connected = Promise.withResolvers<Socket>();
  const closed = Promise.withResolvers<void>();
  const upstream = await startRawUpstream((socket) => {
    socket.on('close', () => closed.resolve()).write(bytes);
    connected.resolve(socket);
  });
  const record = new RequestRecord(new Request('http://gateway.test'));
  return {
    ...upstream,
    call: (options: Partial<UpstreamCall> = {}) =>
      fetchUpstream({ ...CALL, url: upstream.url, ...options }, record),
    record,
    socket: connected.promise,
    closed: closed.promise,
  };
}

it('a kept connection is used for half a minute, because its server may have moved', async () => {
  await using upstream = await startRawUpstream((socket) => {
    const respond = () => socket.write(`${OK}Content-Length: 2\r\n\r\nok`);
    respond();
    socket.on('data', respond);
  });
  // Those that all tests share would keep the time that this one sets.
  const own = new KeptConnections();
  const { pool } = KeptConnections.prototype;
  using _own = spyOn(KeptConnections.prototype, 'pool').mockImplementation(() => pool.call(own));
  let now = performance.now();
  using _clock = spyOn(performance, 'now').mockImplementation(() => now);
  const record = new RequestRecord(new Request('http://gateway.test'));
  const connections: number[] = [];
  for (const passesMs of [0, 0, 20_000, 20_000, 0]) {
    now += passesMs;
    await fetchUpstream({ ...CALL, url: upstream.url }, record);
    connections.push(upstream.connections());
  }
  expect(connections).toEqual([1, 1, 1, 2, 2]);
});

describe('the deadline of fetchUpstream()', () => {
  // The text for each route: relay/every-route.test.ts.
  it.each<[what: string, bytes: string, call: Partial<UpstreamCall>, ms: number]>([
    ['a head', '', {}, 5000],
    ['the first byte of a streamed body, after the head', LARGE, {}, 60_000],
    ['a small body with its head', `${OK}Content-Length: 5\r\n\r\nab`, {}, 5000],
    ['a body that is read whole', `${LARGE}{`, { bodyMode: new Buffered() }, 5000],
    ['a track with its first byte', LARGE, { bodyMode: TRACK }, 5000],
  ])('leaves time for %s', async (_, bytes, call, ms) => {
    await using upstream = await start(bytes);
    using fetched = spyOn(globalThis, 'fetch');
    jest.useFakeTimers();
    let failure: unknown;
    const failing = upstream.call(call).catch((error) => {
      failure = error;
    });
    await upstream.socket;
    // The response of the fetch is the head.
    if (bytes) await fetched.mock.results[0]?.value;
    await new Promise(setImmediate);
    jest.advanceTimersByTime(ms - 1);
    await new Promise(setImmediate);
    expect(failure).toBeUndefined();
    jest.advanceTimersByTime(1);
    await failing;
    expect(failure).toMatchObject({ status: 502, key: 'upstreamTimeout' });
    expect(upstream.record.calls).toMatchObject([{ outcome: 'http_response_timeout' }]);
    await upstream.closed;
  });

  it('does not count while a track waits for memory, and its first byte then has a minute', async () => {
    await using upstream = await start(LARGE);
    const admitted = Promise.withResolvers<boolean>();
    const waits = Promise.withResolvers<void>();
    const admitTrack = () => {
      waits.resolve();
      return admitted.promise;
    };
    const track = new GeneratedTrack(new PaidTrack({ admitTrack }, 5000), 5000, true);
    jest.useFakeTimers();
    const calling = upstream.call({ bodyMode: track }).catch((error) => error);
    await waits.promise;
    jest.advanceTimersByTime(50_000);
    admitted.resolve(true);
    await new Promise(setImmediate);
    jest.advanceTimersByTime(59_999);
    (await upstream.socket).write('first');
    expect(await calling).toMatchObject({
      status: 200,
      body: { firstChunk: new TextEncoder().encode('first') },
    });
  });

  it('and the signal of the client are over when a body has begun', async () => {
    await using upstream = await start(`${LARGE}first`);
    jest.useFakeTimers();
    const client = new AbortController();
    const { body } = await upstream.call({ signal: client.signal });
    client.abort();
    jest.advanceTimersByTime(60_000);
    if (body === null || body instanceof Uint8Array) throw new Error('it is not streamed');
    (await upstream.socket).write('second');
    expect(Buffer.from((await body.rest?.read())?.value ?? '').toString()).toBe('second');
    await body.rest?.cancel();
  });
});

describe('fetchUpstream()', () => {
  it('sends nothing for a client that has disconnected before the call', async () => {
    await using upstream = await start('');
    await expect(upstream.call({ signal: AbortSignal.abort() })).rejects.toBeInstanceOf(GatewayError);
    expect(upstream.record.calls).toMatchObject([{ call: 'proxy', outcome: 'client_gone' }]);
    expect(upstream.connections()).toBe(0);
  });

  it.each<[what: string, line: string, call: Partial<UpstreamCall>, status: number, outcome: string]>([
    ['is a part of a track', '206 Partial Content', { bodyMode: TRACK }, 502, 'http_protocol_error'],
    ['has a status below those of HTTP', '099 Odd', {}, 502, 'http_protocol_error'],
    ['has no room', '200 OK', { bodyMode: NO_ROOM }, 503, 'connection_limit_reached'],
    ['is beyond its session’s share', '200 OK', { bodyMode: NO_SHARE }, 429, 'connection_limit_reached'],
  ])('closes the connection of a response that %s', async (_, line, call, status, outcome) => {
    await using upstream = await start(`HTTP/1.1 ${line}\r\nContent-Length: 100000\r\n\r\nsome`);
    // Keeps the response, because the garbage collector would close its connection as well.
    using _fetch = spyOn(globalThis, 'fetch');
    await expect(upstream.call(call)).rejects.toMatchObject({ status });
    await upstream.closed;
    expect(upstream.record.calls).toMatchObject([{ outcome }]);
  });

  it('takes an unknown failure for one after which the call may have had its effect', async () => {
    await using upstream = await start('');
    using _fetch = spyOn(globalThis, 'fetch').mockRejectedValue(new Error('unknown'));
    await expect(upstream.call()).rejects.toMatchObject({ status: 502 });
    expect(upstream.record.calls).toMatchObject([{ outcome: 'http_response_incomplete' }]);
  });

  it('keeps a call alive that may take longer than the 300 s of fetch', async () => {
    await using upstream = await start(`${OK}Content-Length: 0\r\n\r\n`);
    using fetched = spyOn(globalThis, 'fetch');
    for (const timeoutMs of [1000, 400_000]) await upstream.call({ timeoutMs, method: 'POST' });
    const timeouts = fetched.mock.calls.map(([, options]) => Object(options).timeout);
    expect(timeouts).toEqual([300_000, 400_000]);
  });
});

it('awaitFirstByte() skips empty chunks', async () => {
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      for (const chunk of ['', '', 'first', 'second']) controller.enqueue(Buffer.from(chunk));
    },
  });
  const body = await awaitFirstByte(stream);
  expect(Buffer.from(body?.firstChunk ?? '').toString()).toBe('first');
});
