import { describe, expect, it } from 'bun:test';
import type net from 'node:net';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { SIGNED_IN, startWorld } from '../../support/world.ts';

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
