import { describe, expect, it, jest } from 'bun:test';
import { RawConnection } from '../support/raw-http.ts';
import { GENERATE, PROXIED_PATH, TRACK } from '../support/routes.ts';
import { rawCall, sharedWorld } from '../support/shared-world.ts';
import { ORIGIN, startWorld } from '../support/world.ts';

const HEALTH = 'GET /api/health';

describe('a request', () => {
  const world = sharedWorld();
  const body = JSON.stringify(TRACK);
  const order = [`Content-Length: ${body.length}`, 'Content-Type: application/json'];
  it.each<[what: string, start: string, status: number, lines: string[]]>([
    ['served with 8 KB in one header', HEALTH, 200, [`X: ${'a'.repeat(8000)}`]],
    ['refused with a control character', `GET ${PROXIED_PATH}`, 400, ['If-None-Match: a\x7fb']],
    ['refused with a control character', `POST ${GENERATE.path}`, 400, ['Idempotency-Key: \x7f', ...order]],
  ])('is %s: %s', async (_, start, status, lines) => {
    const call = { lines, body: start.startsWith('POST') ? body : '' };
    expect((await rawCall(world, start, call)).status).toBe(status);
    expect(world.upstream.received).toEqual([]);
    expect((await world.request('/api/health')).status).toBe(200);
  });

  // Bun takes what follows for a tunnel, also after a refusal.
  it.each([
    ['x:443', {}, 404],
    ['http://x/api/health', {}, 405],
    [PROXIED_PATH, {}, 405],
    ['y:443', { origin: '' }, 403],
  ])('with CONNECT %s is refused, and the connection closed', async (target, call, status) => {
    const refused = await rawCall(world, `CONNECT ${target}`, call);
    expect([refused.status, refused.headers.get('connection')]).toEqual([status, 'close']);
    expect(world.upstream.received).toEqual([]);
  });

  // How long each kind of body has: unit/request-body.
  it('whose body drips is 408 after 25 s, and the connection ends at once', async () => {
    await using world = startWorld();
    const { signInBodies } = world.admission;
    const connection = new RawConnection(world.port);
    const head = `POST /api/auth/idp HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\nContent-Length: 100\r\n\r\n`;
    jest.useFakeTimers();
    connection.send(`${head}{`);
    while (!signInBodies.usedBytes) await new Promise(setImmediate);
    for (let second = 0; second < 25; second++) {
      expect(connection.received).toBe('');
      connection.send('x');
      jest.advanceTimersByTime(1000);
      await new Promise(setImmediate);
    }
    await connection.closed;
    expect(connection.received).toStartWith('HTTP/1.1 408 ');
    expect(connection.received).toMatch(/\r\nconnection: close\r\n/i);
    expect(signInBodies.usedBytes).toBe(0);
  });
});
