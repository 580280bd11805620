import { describe, expect, it, spyOn } from 'bun:test';
import type net from 'node:net';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { LOGOUT, pair, REFRESH, reply, signOut } from '../../support/session-calls.ts';
import { SIGNED_IN, startWorld, type World } from '../../support/world.ts';

const UNAUTHORIZED = 'HTTP/1.1 401 Unauthorized\r\nTransfer-Encoding: chunked\r\n\r\n';
const PAIR = JSON.stringify({ access_token: 'access-2', refresh_token: 'refresh-2', token_type: 'Bearer' });

/** An upstream that knows only the second access token, and responds to the first one with a 401 of the given end. */
function startUpstream(refuse: (socket: net.Socket) => void) {
  return startRawUpstream((socket, request) => {
    const isRefresh = request.startsWith('POST /v1/auth/refresh ');
    const text = isRefresh ? PAIR : 'track';
    if (!isRefresh && request.includes('Bearer access-1')) refuse(socket);
    else socket.end(`HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
  });
}

describe('a proxied call is repeated with a new access token', () => {
  it.each([
    ['never begins', (socket: net.Socket) => void socket.write(UNAUTHORIZED)],
    ['breaks before its first byte', (socket: net.Socket) => void socket.end(UNAUTHORIZED)],
  ])('after a 401 whose body %s', async (_, refuse) => {
    await using upstream = await startUpstream(refuse);
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await world.request('/api/upstream/v1/music/1', { cookie: SIGNED_IN });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('track');
    await world.line({ refresh: 'renewed' });
  });
});

describe('the body of a 401 that nobody gets', () => {
  it.each<[outcome: string, status: number, prepare: (world: World) => unknown]>([
    ['renewed', 200, ({ upstream }) => upstream.on(REFRESH, reply(200, pair(2)))],
    ['rejected', 401, ({ upstream }) => upstream.on(REFRESH, reply(401))],
    ['ended', 401, (world) => signOut(world, SIGNED_IN)],
  ])('is cancelled, which frees its connection, when the session is %s', async (_, status, prepare) => {
    await using world = startWorld();
    world.upstream.on(LOGOUT, reply(204)).on('GET /v1/music/1', ({ headers }) => {
      if (headers.get('authorization') === 'Bearer access-2') return Response.json({});
      const start = (controller: ReadableStreamDefaultController) => controller.enqueue('wait');
      return new Response(new ReadableStream({ start }), { status: 401 });
    });
    await prepare(world);
    // Otherwise the connection is free when the garbage collector finds the body, which the upstream cannot see.
    using cancel = spyOn(ReadableStreamDefaultReader.prototype, 'cancel');
    expect((await world.request('/api/upstream/v1/music/1', { cookie: SIGNED_IN })).status).toBe(status);
    expect(cancel).toHaveBeenCalledTimes(1);
  });
});
