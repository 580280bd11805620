import { expect, it } from 'bun:test';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { BUFFERED, PUBLIC, proxied } from '../../support/routes.ts';
import { rawCall, sharedWorld } from '../../support/shared-world.ts';
import { ORIGIN, startWorld } from '../../support/world.ts';

/** The headers with these names, each with a value of its own. */
function named(names: string): Record<string, string> {
  return Object.fromEntries(names.split(/\s+/).map((name) => [name, `"the ${name}"; q=0.9, x`]));
}

function linesOf(headers: Record<string, string>): string[] {
  return Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
}

const REQUEST_PASSES = {
  ...named(`accept accept-encoding accept-language cache-control content-encoding content-type idempotency-key
    if-match if-modified-since if-none-match if-range if-unmodified-since incremental last-event-id pragma`),
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
};
const REQUEST_DROPPED = linesOf({
  ...named(`authorization referer user-agent forwarded x-forwarded-for x-forwarded-host x-real-ip x-original-url
    x-http-method-override baggage sentry-trace x-requested-with x-datadog-trace-id keep-alive proxy-authorization te trailer x-hop`),
  upgrade: 'h2c',
  connection: 'upgrade, x-hop',
});
const RESPONSE_PASSES = named(`content-type retry-after ratelimit ratelimit-limit x-ratelimit-limit
  x-ratelimit-limit-requests`);
/** What else passes with a streamed body. */
const STREAMED: Record<string, string> = {
  ...named(`accept-ranges age allow cache-control content-disposition content-language content-range etag expires
    incremental last-modified x-generation-id x-music-creation-id`),
  'content-location': 'https://cdn.test/a',
  location: '/api/upstream/v1/x',
  link: '</api/upstream/v1/y>',
};
const RESPONSE_DROPPED = linesOf({
  ...named(`set-cookie clear-site-data access-control-allow-origin access-control-expose-headers via x-random
    content-security-policy keep-alive proxy-authenticate refresh service-worker-allowed strict-transport-security
    trailer x-accel-buffering x-content-type-options www-authenticate x-rate-limit x-request-id server-timing x-hop`),
  connection: 'close, X-Hop',
});
const RESPONSE = [
  'HTTP/1.1 200 Fine',
  'Content-Length: 4',
  'Vary: Accept',
  ...RESPONSE_DROPPED,
  ...linesOf({ ...RESPONSE_PASSES, ...STREAMED, location: '/v1/x', link: '</v1/y>' }),
  '\r\nbody',
].join('\r\n');
/** What the gateway itself puts on every relayed response. */
const OWN =
  `access-control-allow-credentials access-control-allow-origin access-control-expose-headers content-length
  content-security-policy date vary x-content-type-options x-request-id`.split(/\s+/);

const world = sharedWorld();

// What becomes of single ones: unit/forwarded-headers.test.ts and unit/mapped-addresses.test.ts.
it.each([proxied('GET'), PUBLIC])(
  'the headers of a request pass to the upstream as they are listed, and no other: $name',
  async ({ path, calls, credentials }) => {
    const call = calls.join();
    world.upstream.on(call, () => new Response());
    for (const listed of [REQUEST_PASSES, {}]) {
      const lines = [...linesOf(listed), ...REQUEST_DROPPED];
      expect((await rawCall(world, `GET ${path}`, { lines })).status).toBe(200);
      expect(Object.fromEntries(world.upstream.last(call).headers)).toEqual({
        accept: credentials === null ? '*/*' : 'application/json',
        traceparent: expect.any(String),
        ...listed,
        ...(credentials === null ? {} : { authorization: credentials }),
        connection: 'keep-alive',
        host: new URL(world.upstream.upstreamUrl).host,
        'user-agent': `Bun/${Bun.version}`,
        'x-request-id': expect.any(String),
        via: '1.1 music-gateway',
      });
    }
  },
);

it.each([
  ...BUFFERED.map((route) => ({ ...route, others: { 'cache-control': 'no-store' }, vary: 'Origin, Cookie' })),
  {
    ...proxied('GET'),
    others: { ...STREAMED, 'cache-control': `private, ${STREAMED['cache-control']}` },
    vary: 'Origin, Cookie, Accept',
  },
  { ...PUBLIC, others: STREAMED, vary: 'Origin, Accept' },
])('the headers of a response pass to the client as they are listed, and no other: $name', async (route) => {
  await using upstream = await startRawUpstream((socket) => socket.end(RESPONSE));
  await using own = startWorld({ UPSTREAM_URL: upstream.url });
  const { status, headers, body } = await rawCall(own, `GET ${route.path}`);
  expect([status, body]).toEqual([200, 'body']);
  const passed = { ...RESPONSE_PASSES, ...route.others };
  expect(Object.fromEntries(headers)).toMatchObject({
    ...passed,
    'access-control-allow-origin': ORIGIN,
    'access-control-expose-headers': expect.stringContaining('x-ratelimit-limit-requests'),
    'content-security-policy': "sandbox; default-src 'none'",
    'x-content-type-options': 'nosniff',
    'x-request-id': expect.not.stringContaining('the'),
    vary: route.vary,
  });
  expect([...headers.keys()].toSorted()).toEqual([...OWN, ...Object.keys(passed)].toSorted());
});
