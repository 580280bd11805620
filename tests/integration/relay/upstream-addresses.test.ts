import { describe, expect, it } from 'bun:test';
import { sharedWorld, startRawWorld } from '../../support/shared-world.ts';
import { ACCESS_ONLY } from '../../support/world.ts';

const START = 'GET /v1/dir/start?page=1';
const TO_START = '/api/upstream/v1/dir/start?page=1';

const world = sharedWorld();
const { upstreamUrl } = world.upstream;
const { host } = new URL(upstreamUrl);

/** The header as it arrives at the client; `<base>` and `<host>` are those of the upstream. */
async function relayed(name: string, address: string, status = 200): Promise<string | null> {
  const value = address.replaceAll('<base>', upstreamUrl).replaceAll('<host>', host);
  world.upstream.on(START, () => new Response('list', { status, headers: { [name]: value } }));
  const response = await world.request(TO_START, { cookie: ACCESS_ONLY });
  expect(response.status).toBe(status);
  expect(await response.text()).toBe('list');
  expect(world.upstream.calls).toEqual([START]);
  world.upstream.received.length = 0;
  return response.headers.get(name);
}

describe('an address of the upstream in Location and Content-Location', () => {
  it.each([
    ['<base>/v1/elsewhere?a=b#c', '/api/upstream/v1/elsewhere?a=b#c'],
    ['/base/v1/elsewhere', '/api/upstream/v1/elsewhere'],
    ['/base/v1/', '/api/upstream/v1/'],
    ['elsewhere.sw.json', '/api/upstream/v1/dir/elsewhere.sw.json'],
    ['./elsewhere', '/api/upstream/v1/dir/elsewhere'],
    ['../elsewhere', '/api/upstream/v1/elsewhere'],
    ['?page=2', '/api/upstream/v1/dir/start?page=2'],
    ['/base/v2/../v1/elsewhere', '/api/upstream/v1/elsewhere'],
    // Other hosts are kept.
    ['https://cdn.test/base/v1/track?signature=a%2Bb', 'https://cdn.test/base/v1/track?signature=a%2Bb'],
    ['http://127.0.0.1.evil.test/base/v1/x', 'http://127.0.0.1.evil.test/base/v1/x'],
  ])('is mapped to the gateway: %s is %s', async (address, expected) => {
    expect(await relayed('location', address, 302)).toBe(expected);
    expect(await relayed('content-location', address)).toBe(expected);
  });

  it.each([
    ...['<base>/v2/elsewhere', '<base>/admin', '<base>/v1', '<base>/v1x/elsewhere', '<base>'],
    ...['<base>/v1/../v2/elsewhere', '<base>/v1/%2e%2e/v2/elsewhere', '/v1/elsewhere', '/admin'],
    ...['../../elsewhere', '//<host>/admin', 'http://user:secret@<host>/base/v1/elsewhere'],
    'http://[not-an-address/',
  ])('is dropped when the gateway does not serve it: %s', async (address) => {
    expect(await relayed('location', address, 302)).toBeNull();
    expect(await relayed('content-location', address)).toBeNull();
  });

  it.each([301, 302, 303, 307, 308])('is not followed in a %d', async (status) => {
    expect(await relayed('location', '/base/v1/elsewhere', status)).toBe('/api/upstream/v1/elsewhere');
  });

  it.each(['http://127.0.0.1', 'HTTP://127.1'])('is mapped for the base address %s', async (base) => {
    const moved = 'HTTP/1.1 302 Found\r\nLocation: /v1/elsewhere\r\nContent-Length: 0\r\n\r\n';
    await using raw = await startRawWorld(moved);
    const { port } = new URL(raw.upstreamUrl);
    await using spelt = await startRawWorld(moved, { UPSTREAM_URL: `${base}:${port}` });
    const response = await spelt.request(TO_START, { cookie: ACCESS_ONLY });
    expect(response.headers.get('location')).toBe('/api/upstream/v1/elsewhere');
  });
});

// How links are parsed and mapped: unit/mapped-addresses.test.ts.
describe('an address of the upstream in Link', () => {
  it.each([
    [
      '<<base>/v1/dir/start?page=2>; rel=next; title="a, b", <?page=9>; rel="last"',
      '</api/upstream/v1/dir/start?page=2>; rel=next; title="a, b", </api/upstream/v1/dir/start?page=9>; rel="last"',
    ],
    ['no link at all', null],
  ])('is mapped or dropped: %s', async (link, expected) => {
    expect(await relayed('link', link)).toBe(expected);
  });
});
