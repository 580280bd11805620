import { describe, expect, it } from 'bun:test';
import { rawRequest } from '../support/raw-http.ts';
import { startWorld } from '../support/world.ts';

describe('GET /api/health', () => {
  it('answers with the service name and status, without cookies and without an Origin', async () => {
    await using world = startWorld({ SERVICE_NAME: 'my-gateway' });
    const response = await world.request('/api/health', { origin: null });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toStartWith('application/json');
    expect(await response.json()).toEqual({ service: 'my-gateway', status: 'ok' });
  });

  it.each(['HTTP/1.0', 'HTTP/1.1\r\nHost: ', 'HTTP/1.1\r\nHost: lb'])(
    'answers a load balancer that asks with %j',
    async (rest) => {
      await using world = startWorld();
      const { status, body } = await rawRequest(
        world.port,
        `GET /api/health ${rest}\r\nConnection: close\r\n\r\n`,
      );
      expect(status).toBe(200);
      expect(body).toContain('"status":"ok"');
    },
  );

  it('is called music-gateway unless configured', async () => {
    await using world = startWorld();
    const response = await world.request('/api/health', { origin: null });
    expect(await response.json()).toEqual({ service: 'music-gateway', status: 'ok' });
  });
});
