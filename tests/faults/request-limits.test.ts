import { describe, expect, it, jest } from 'bun:test';
import { createGateway } from '../../src/gateway/gateway.ts';
import { TRACK } from '../support/long-calls.ts';
import { RawConnection, rawRequest } from '../support/raw-http.ts';
import { recordLog } from '../support/recorded-log.ts';
import { ACCESS_ONLY, ORIGIN, startWorld, testSettings, type World } from '../support/world.ts';

const NOBODY = 'http://127.0.0.1:9';
const GENERATION = JSON.stringify(TRACK);

/** The request that asks for the connection to be closed, from an allowed origin. */
function send({ port }: World, start: string, headers: string, body = '') {
  const fixed = `Host: x\r\nOrigin: ${ORIGIN}\r\nConnection: close\r\n`;
  return rawRequest(port, `${start} HTTP/1.1\r\n${fixed}${headers}\r\n${body}`);
}

async function expectServed(world: World): Promise<void> {
  expect((await world.request('/api/auth/session')).status).toBe(200);
}

describe('a request head', () => {
  const many = Array.from({ length: 5000 }, (_, index) => `X-${index}: y\r\n`).join('');
  it.each([
    ['is served with 8 KB in one header', `X: ${'a'.repeat(8000)}\r\n`, [200]],
    ['is refused beyond 16 KiB in one header', `X: ${'a'.repeat(20_000)}\r\n`, [431]],
    ['is refused with far too many headers', many, [400, 431]],
  ])('%s', async (_, headers, statuses) => {
    await using world = startWorld();
    expect((await send(world, 'GET /api/auth/session', headers)).status).toBeOneOf(statuses);
    await expectServed(world);
  });

  it('is cut off by the idle timeout when it stops or drips before its end', async () => {
    const settings = testSettings({ UPSTREAM_URL: NOBODY, IDP_URL: NOBODY });
    const gateway = createGateway({ settings, logger: recordLog().logger });
    gateway.listen({ port: 0, hostname: '127.0.0.1', idleTimeout: 1 });
    const port = gateway.server?.port ?? 0;
    const [stopped, dripping] = [new RawConnection(port), new RawConnection(port)];
    for (const each of [stopped, dripping]) await each.send('GET /api/health HTTP/1.1\r\nHost: x\r\nX: ');
    const drip = setInterval(() => dripping.send('a'), 100);
    await Promise.all([stopped.closed, dripping.closed]);
    clearInterval(drip);
    await gateway.stop(true);
  });
});

describe('a request body that does not come to its end', () => {
  it.each([
    ['with a small length, and drips', 'Content-Length: 100', 'x'],
    ['with a large length, and stops', 'Content-Length: 2000000', ''],
    ['in chunks, and drips', 'Transfer-Encoding: chunked', '1\r\nx\r\n'],
  ])('%s: is 408 after 25 s, and the connection ends at once', async (_, length, more) => {
    await using world = startWorld();
    const { requestBodies } = world.admission;
    const connection = new RawConnection(world.port);
    jest.useFakeTimers();
    try {
      await connection.send(
        `POST /api/auth/idp HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\n${length}\r\n\r\n${more}`,
      );
      while (!requestBodies.usedBytes) await new Promise(setImmediate);
      for (let second = 0; second < 25; second++) {
        expect(connection.received).toBe('');
        await connection.send(more);
        jest.advanceTimersByTime(1000);
        await new Promise(setImmediate);
      }
      await connection.closed;
      expect(connection.received).toStartWith('HTTP/1.1 408 ');
      expect(connection.received).toMatch(/\r\nconnection: close\r\n/i);
      expect(requestBodies.usedBytes).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });
});

describe('CONNECT', () => {
  it.each(['x:443', 'http://x/api/health', '/api/upstream/v1/x'])(
    'to %s is refused and the connection closed, because Bun takes what follows for a tunnel',
    async (target) => {
      await using world = startWorld();
      const head = `CONNECT ${target} HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\n\r\n`;
      expect((await rawRequest(world.port, head)).status).toBeOneOf([404, 405]);
      await expectServed(world);
    },
  );
});

describe('a control character in a forwarded header', () => {
  it.each([
    ['GET /api/upstream/v1/x', 'If-None-Match: a\x7fb\r\n', ''],
    ['POST /api/music/generate', 'Idempotency-Key: \x7f\r\nContent-Type: application/json\r\n', GENERATION],
  ])('is refused: %s', async (start, headers, body) => {
    await using world = startWorld();
    const length = body ? `Content-Length: ${body.length}\r\n` : '';
    const { status } = await send(world, start, `Cookie: ${ACCESS_ONLY}\r\n${headers}${length}`, body);
    expect(status).toBe(400);
    expect(world.upstream.received).toEqual([]);
  });
});
