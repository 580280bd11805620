import { afterEach, beforeEach, describe, expect, it, jest, onTestFinished } from 'bun:test';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { CollectedLines } from '../../../src/gateway/telemetry/collected-lines.ts';
import { createLogger } from '../../../src/gateway/telemetry/logger.ts';
import { RawConnection, rawRequest } from '../../support/raw-http.ts';
import { recordLog } from '../../support/recorded-log.ts';
import { GENERATE } from '../../support/routes.ts';
import { rawText } from '../../support/shared-world.ts';
import {
  ACCESS_ONLY,
  ORIGIN,
  REFRESH_ONLY,
  startWorld,
  testSettings,
  type World,
} from '../../support/world.ts';

const NO_SERVER = 'http://127.0.0.1:9';
const MODELS = '/api/music/models';

let world: World;
beforeEach(() => {
  world = startWorld();
});
afterEach(() => world[Symbol.asyncDispose]());

// Which facts have which level: metrics.test.ts. What a refresh notes: traces.test.ts, unit/refresh-coordinator.test.ts.
describe('the log line of a request', () => {
  it('has these fields, and no others', async () => {
    world.upstream.on('GET /v1/models', () => Response.json({ data: [] }));
    await (await world.request(MODELS, { cookie: ACCESS_ONLY })).arrayBuffer();
    expect(world.lines).toEqual([
      {
        level: 'info',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
        traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
        method: 'GET',
        route: MODELS,
        status: 200,
        durationMs: expect.any(Number),
        headMs: expect.any(Number),
        bytes: '{"data":[]}'.length,
        upstream: [{ call: 'models', outcome: 200, ms: expect.any(Number) }],
        msg: 'request',
      },
    ]);
  });

  it('has the route without a host, the reason of a refusal, and no bytes of a response to HEAD', async () => {
    world.upstream.on('GET /v1/models', () => new Response('x'.repeat(50_000)));
    await rawRequest(world.port, 'GET /api/health HTTP/1.0\r\nConnection: close\r\n\r\n');
    await world.request(GENERATE.path, { cookie: ACCESS_ONLY, json: { model: 'm', prompt: '' } });
    await world.request(MODELS, { cookie: ACCESS_ONLY, method: 'HEAD' });
    expect(world.lines).toMatchObject([
      { route: '/api/health', status: 200 },
      { route: GENERATE.path, status: 400, reason: 'promptInvalid' },
      { method: 'HEAD', status: 200 },
    ]);
    expect(world.lines[2]).not.toContainKey('bytes');
  });

  it('is an error for a fault of the gateway, with its place and without its message', async () => {
    const { logger, lines } = recordLog();
    const settings = testSettings({ UPSTREAM_URL: NO_SERVER, IDP_URL: NO_SERVER });
    const gateway = createGateway({ settings, logger });
    gateway.get('/api/faulty', function handle() {
      throw new RangeError('a message\n    at nowhere');
    });
    const request = new Request('http://gateway.test/api/faulty', { headers: { origin: ORIGIN } });
    expect((await gateway.handle(request)).status).toBe(500);
    const cause = expect.stringMatching(/^RangeError at handle \(.*request-log\.test\.ts:\d+:\d+\)$/);
    expect(lines).toMatchObject([{ level: 'error', route: '/api/faulty', reason: 'internalError', cause }]);
  });

  it.each([
    ['a sign-out', 'POST', '/api/auth/logout', {}],
    ['a refresh', 'GET', MODELS, { cookie: REFRESH_ONLY }],
  ])(
    'is written at once for %s, with those that wait, because the process may be killed',
    async (_, method, path, more) => {
      jest.useFakeTimers();
      onTestFinished(() => void jest.useRealTimers());
      let written = '';
      const lines = new CollectedLines((text) => {
        written += text;
      });
      const settings = testSettings({ UPSTREAM_URL: NO_SERVER, IDP_URL: NO_SERVER });
      const gateway = createGateway({ settings, logger: createLogger('info', lines) });
      const handle = (method: string, path: string, more: object) =>
        gateway.handle(
          new Request(`http://gateway.test${path}`, { method, headers: { origin: ORIGIN, ...more } }),
        );
      for (const path of ['/1', '/2']) await handle('GET', path, {});
      expect(written.match(/"route":"unmatched"/g)).toHaveLength(1);
      await handle(method, path, more);
      expect(written).toMatch(new RegExp(`"unmatched".*\\n.*"unmatched".*\\n.*"${path}".*\\n$`));
    },
  );

  // Other ends: relay/every-end.test.ts.
  it('says when the client disconnects while it sends its body', async () => {
    const client = new RawConnection(world.port);
    await client.send(rawText('PUT /api/upstream/v1/x', { lines: ['Content-Length: 100'], body: 'abc' }));
    await world.roundTrip();
    client.hangUp();
    expect(await world.line({ method: 'PUT' })).toMatchObject({ status: 400, clientGone: 'waiting' });
  });
});
