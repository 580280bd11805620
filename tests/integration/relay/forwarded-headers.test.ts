import { describe, expect, it } from 'bun:test';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { PUBLIC, proxied } from '../../support/routes.ts';
import { rawCall, sharedWorld } from '../../support/shared-world.ts';
import { ORIGIN, startWorld } from '../../support/world.ts';

const ROUTES = [proxied('GET'), PUBLIC].map((route) => ({ ...route, call: route.calls.join() }));

/** The headers with these names, each with a value of its own. */
function named(names: string): Record<string, string> {
  return Object.fromEntries(names.split(/\s+/).map((name) => [name, `"the ${name}"; q=0.9, x`]));
}

function linesOf(headers: Record<string, string>): string[] {
  return Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
}

const REQUEST_PASSES = {
  ...named(`accept accept-encoding accept-language cache-control content-encoding content-type idempotency-key
    if-match if-modified-since if-none-match if-range if-unmodified-since pragma`),
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
};
const REQUEST_DROPPED = linesOf({
  ...named(`authorization referer user-agent forwarded x-forwarded-for x-forwarded-host x-real-ip x-original-url
    x-http-method-override last-event-id keep-alive proxy-authorization te trailer x-hop`),
  upgrade: 'h2c',
  connection: 'upgrade, x-hop',
});
const RESPONSE_PASSES = {
  ...named(`accept-ranges age allow cache-control content-disposition content-language content-range content-type etag
    expires last-modified retry-after ratelimit ratelimit-limit x-ratelimit-limit x-ratelimit-limit-requests
    x-generation-id x-music-creation-id`),
  'content-location': 'https://cdn.test/a',
};
/** Addresses of the upstream, which become those of the gateway. */
const MAPPED = { location: '/v1/x', link: '<?page=2>' };
const RESPONSE_DROPPED = linesOf({
  ...named(`set-cookie clear-site-data access-control-allow-origin access-control-expose-headers via x-random
    content-security-policy keep-alive proxy-authenticate refresh service-worker-allowed strict-transport-security
    trailer x-content-type-options www-authenticate x-rate-limit x-request-id x-hop`),
  connection: 'close, X-Hop',
});
/** What the gateway itself puts on every relayed response. */
const OWN = [
  'access-control-allow-credentials',
  'access-control-allow-origin',
  'access-control-expose-headers',
  'content-length',
  'content-security-policy',
  'date',
  'vary',
  'x-content-type-options',
  'x-request-id',
];

const world = sharedWorld();
for (const { call } of ROUTES) world.upstream.on(call, () => new Response());

// What becomes of single ones: unit/forwarded-headers.test.ts and unit/mapped-addresses.test.ts.
describe.each(ROUTES)('the headers of $name', ({ name, path, call, credentials }) => {
  it.each([
    ['all of them', REQUEST_PASSES],
    ['none of them', {}],
  ])(
    'pass to the upstream as they are listed, and no other, of a client that sends %s',
    async (_, listed) => {
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
    },
  );

  it('pass to the client as they are listed, and no other', async () => {
    const head = ['HTTP/1.1 200 Fine', 'Content-Length: 4', 'Vary: Accept'];
    const lines = [...head, ...RESPONSE_DROPPED, ...linesOf({ ...RESPONSE_PASSES, ...MAPPED })];
    const response = `${lines.join('\r\n')}\r\n\r\nbody`;
    await using upstream = await startRawUpstream((socket) => socket.end(response));
    await using own = startWorld({ UPSTREAM_URL: upstream.url });
    const { status, headers, body } = await rawCall(own, `GET ${path}`);
    expect([status, body]).toEqual([200, 'body']);
    expect(Object.fromEntries(headers)).toMatchObject({
      ...RESPONSE_PASSES,
      location: '/api/upstream/v1/x',
      link: `<${path}?page=2>`,
      'access-control-allow-origin': ORIGIN,
      'content-security-policy': "sandbox; default-src 'none'",
      'x-content-type-options': 'nosniff',
      'x-request-id': expect.not.stringContaining('the'),
      vary: name === PUBLIC.name ? 'Origin, Accept' : 'Origin, Cookie, Accept',
    });
    const passed = Object.keys({ ...RESPONSE_PASSES, ...MAPPED });
    expect([...headers.keys()].toSorted()).toEqual([...OWN, ...passed].toSorted());
  });
});
