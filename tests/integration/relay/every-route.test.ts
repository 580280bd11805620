import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { ROUTES, SIGN_IN_ROUTE, scriptRoutes } from '../../support/routes.ts';
import { REFRESH } from '../../support/session-calls.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import {
  CLOSED,
  envelopeMessage,
  REFRESH_ONLY,
  type RequestOptions,
  SIGNED_IN,
  startWorld,
} from '../../support/world.ts';

const SECRETS = /access-1|secret-code|vvvv|taarab|127\.0\.0\.1/;
const IDS = {
  'x-request-id': 'mine',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: 'vendor=opaque',
};

async function expectFailure(response: Response, { method }: RequestOptions, message: string, error: string) {
  const { status, headers } = response;
  const proxyStatus = `music-gateway; error=${error}`;
  expect([status, headers.get('proxy-status'), headers.getSetCookie()]).toEqual([502, proxyStatus, []]);
  expect(JSON.stringify([...response.headers])).not.toMatch(SECRETS);
  if (method !== 'HEAD') expect(await envelopeMessage(response, 502)).toBe(message);
}

describe.each(ROUTES)('$name', ({ name, path, options, calls, credentials, unreachable }) => {
  const world = sharedWorld();
  scriptRoutes(world);

  it('sends its ids and its token, nothing else of the browser, and varies by the cookie of a session', async () => {
    const headers = { accept: 'text/html', authorization: 'Bearer from-the-browser', ...IDS };
    const response = await world.request(path, { cookie: SIGNED_IN, ...options, headers });
    expect(response.status).toBe(200);
    // Without it, a cache could give one user's response to another.
    expect(response.headers.get('vary')).toBe(credentials === null ? 'Origin' : 'Origin, Cookie');
    expect(world.upstream.calls).toEqual([...calls]);
    for (const { headers: sent } of world.upstream.received) {
      expect(Object.fromEntries(sent)).toMatchObject(IDS);
      expect(sent.get('authorization')).toBe(credentials);
      expect(sent.get('accept')).toBe(path.startsWith('/api/upstream') ? 'text/html' : 'application/json');
      for (const each of ['cookie', 'origin']) expect(sent.has(each)).toBe(false);
    }
    await world.line({ requestId: 'mine', traceId: '0af7651916cd43dd8448eb211c80319c' });
  });

  // What else an upstream may do: faults/faulty-upstream.test.ts.
  it('responds 502, and names no address and no secret, when its server cannot be reached', async () => {
    await using away = startWorld({ UPSTREAM_URL: CLOSED, IDP_URL: CLOSED });
    await expectFailure(await away.request(path, options), options, unreachable, 'connection_refused');
    const failure = { level: 'warn', status: 502, cause: 'TypeError ECONNREFUSED' };
    expect(away.lines).toMatchObject([{ ...failure, upstream: [{ outcome: 'connection_refused' }] }]);
    expect(away.log.join()).not.toMatch(SECRETS);
  });

  if (credentials === null || name === 'session check') return;
  it('is refused without a session', async () => {
    for (const cookie of ['', 'svc_music_access=; svc_music_refresh=', 'svc_music_access=a%20b']) {
      const response = await world.request(path, { ...options, cookie });
      expect([response.status, response.headers.getSetCookie()]).toEqual([401, []]);
      if (options.method !== 'HEAD')
        expect(await envelopeMessage(response, 401)).toBe(messages.en.notSignedIn);
    }
    expect([world.upstream.calls, world.log]).toEqual([[], []]);
  });
});

const LATE = [
  ...ROUTES.map((route) => ({ ...route, calls: route.calls.slice(0, 1) })),
  { ...SIGN_IN_ROUTE, late: messages.en.upstreamTimeout },
  {
    ...SIGN_IN_ROUTE,
    late: messages.en.upstreamUnreachable,
    calls: [REFRESH],
    path: '/api/auth/session',
    options: { cookie: REFRESH_ONLY },
  },
];

// What a deadline covers: unit/fetch-upstream.test.ts. All wait at the same time, because each waits for a second.
it('a call that is late is a 502 on every route, and is not made again', async () => {
  const failed = LATE.map(async ({ deadline, path, options, calls, late }) => {
    await using world = startWorld({ [deadline]: '1000' });
    scriptRoutes(world);
    world.upstream.on(calls.at(-1) ?? '', () => new Promise(() => {}));
    await expectFailure(await world.request(path, options), options, late, 'http_response_timeout');
    expect([world.upstream.calls, world.log.length]).toEqual([[...calls], 1]);
  });
  await Promise.all(failed);
});
