import { describe, expect, it, jest } from 'bun:test';
import net from 'node:net';
import { createGateway } from '../../src/gateway/gateway.ts';
import { rawRequest } from '../support/raw-http.ts';
import { recordLog } from '../support/recorded-log.ts';
import { ORIGIN, startWorld, testSettings, type World } from '../support/world.ts';

function get(world: World, headers: string) {
  return rawRequest(
    world.port,
    `GET /api/auth/session HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\nConnection: close\r\n${headers}\r\n`,
  );
}

async function expectServed(world: World): Promise<void> {
  expect((await world.request('/api/auth/session')).status).toBe(200);
}

describe('a request head that is too large', () => {
  it('is refused with 431 beyond 16 KiB in one header', async () => {
    await using world = startWorld();
    expect((await get(world, `X: ${'a'.repeat(20_000)}\r\n`)).status).toBe(431);
    expect((await get(world, `X: ${'a'.repeat(8000)}\r\n`)).status).toBe(200);
    await expectServed(world);
  });

  it('is refused with far too many headers', async () => {
    await using world = startWorld();
    const many = Array.from({ length: 5000 }, (_, index) => `X-${index}: y\r\n`).join('');
    expect((await get(world, many)).status).toBeOneOf([400, 431]);
    await expectServed(world);
  });
});

describe('a request head that does not come to its end', () => {
  it.each([
    ['stops', ''],
    ['drips', 'a'],
  ])('is cut off by the idle timeout when it %s', async (_, more) => {
    const gateway = createGateway({
      settings: testSettings({ UPSTREAM_URL: 'http://127.0.0.1:9', IDP_URL: 'http://127.0.0.1:9' }),
      logger: recordLog().logger,
    });
    gateway.listen({ port: 0, hostname: '127.0.0.1', idleTimeout: 1 });
    const closed = Promise.withResolvers<void>();
    const socket = net.connect(gateway.server?.port ?? 0, '127.0.0.1', () =>
      socket.write('GET /api/health HTTP/1.1\r\nHost: x\r\nX: '),
    );
    const drip = setInterval(() => more && socket.write(more), 100);
    socket.on('error', () => {}).on('close', () => closed.resolve());
    await closed.promise;
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
    const closed = Promise.withResolvers<void>();
    let received = '';
    jest.useFakeTimers();
    try {
      const socket = net.connect(world.port, '127.0.0.1');
      socket.on('data', (data) => {
        received += data;
      });
      socket.on('error', () => {}).on('close', () => closed.resolve());
      socket.write(`POST /api/auth/idp HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\n${length}\r\n\r\n${more}`);
      const { requestBodies } = world.admission;
      while (!requestBodies.usedBytes) await new Promise(setImmediate);
      for (let second = 0; second < 25; second++) {
        expect(received).toBe('');
        socket.write(more);
        jest.advanceTimersByTime(1000);
        await new Promise(setImmediate);
      }
      await closed.promise;
      expect(received).toStartWith('HTTP/1.1 408 ');
      expect(received).toMatch(/\r\nconnection: close\r\n/i);
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
      const { status } = await rawRequest(
        world.port,
        `CONNECT ${target} HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\n\r\n`,
      );
      expect(status).toBeOneOf([404, 405]);
      await expectServed(world);
    },
  );
});

describe('a control character in a forwarded header', () => {
  it.each([
    ['GET /api/upstream/v1/x', 'If-None-Match: a\x7fb\r\n'],
    [
      'POST /api/music/generate',
      'Idempotency-Key: \x7f\r\nContent-Type: application/json\r\nContent-Length: 48\r\n',
    ],
  ])('is refused: %s', async (start, headers) => {
    await using world = startWorld();
    const body = start.startsWith('POST')
      ? '{"model":"m","prompt":"p","music_length_ms":3000}'.slice(0, 49)
      : '';
    const { status } = await rawRequest(
      world.port,
      `${start} HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\nCookie: svc_music_access=a\r\nConnection: close\r\n${headers.replace('48', String(body.length))}\r\n${body}`,
    );
    expect(status).toBe(400);
    expect(world.upstream.received).toEqual([]);
  });
});
