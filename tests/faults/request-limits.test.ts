import { describe, expect, it, jest } from 'bun:test';
import { TRACK } from '../support/long-calls.ts';
import { RawConnection, rawRequest } from '../support/raw-http.ts';
import { ACCESS_ONLY, ORIGIN, startWorld, type World } from '../support/world.ts';

const GENERATION = JSON.stringify(TRACK);

/** The request that asks for the connection to be closed, from an allowed origin. */
function send({ port }: World, start: string, headers = '', body = '') {
  const fixed = `Host: x\r\nOrigin: ${ORIGIN}\r\nCookie: ${ACCESS_ONLY}\r\nConnection: close\r\n`;
  return rawRequest(port, `${start} HTTP/1.1\r\n${fixed}${headers}\r\n${body}`);
}

describe('a request', () => {
  const many = Array.from({ length: 5000 }, (_, index) => `X-${index}: y\r\n`).join('');
  const length = `Content-Length: ${GENERATION.length}\r\nContent-Type: application/json\r\n`;
  it.each([
    ['is served with 8 KB in one header', 'GET /api/health', `X: ${'a'.repeat(8000)}\r\n`, '', [200]],
    ['is refused with far too many headers', 'GET /api/health', many, '', [400, 431]],
    ['is refused with a control character', 'GET /api/upstream/v1/x', 'If-None-Match: a\x7fb\r\n', '', [400]],
    [
      'is refused with a control character',
      'POST /api/music/generate',
      `Idempotency-Key: \x7f\r\n${length}`,
      GENERATION,
      [400],
    ],
    // Bun takes what follows for a tunnel.
    ['is refused with CONNECT', 'CONNECT x:443', '', '', [404, 405]],
    ['is refused with CONNECT', 'CONNECT http://x/api/health', '', '', [404, 405]],
    ['is refused with CONNECT', 'CONNECT /api/upstream/v1/x', '', '', [404, 405]],
  ])('%s: %s', async (_, start, headers, body, statuses) => {
    await using world = startWorld();
    expect((await send(world, start, headers, body)).status).toBeOneOf(statuses);
    expect(world.upstream.received).toEqual([]);
    expect((await world.request('/api/health')).status).toBe(200);
  });

  // How long each kind of body has: unit/request-body.
  it('whose body drips is 408 after 25 s, and the connection ends at once', async () => {
    await using world = startWorld();
    const { requestBodies } = world.admission;
    const connection = new RawConnection(world.port);
    const head = `POST /api/auth/idp HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\nContent-Length: 100\r\n\r\n`;
    jest.useFakeTimers();
    try {
      await connection.send(`${head}{`);
      while (!requestBodies.usedBytes) await new Promise(setImmediate);
      for (let second = 0; second < 25; second++) {
        expect(connection.received).toBe('');
        await connection.send('x');
        jest.advanceTimersByTime(1000);
        await new Promise(setImmediate);
      }
      await connection.closed;
    } finally {
      jest.useRealTimers();
    }
    expect(connection.received).toStartWith('HTTP/1.1 408 ');
    expect(connection.received).toMatch(/\r\nconnection: close\r\n/i);
    expect(requestBodies.usedBytes).toBe(0);
  });
});
