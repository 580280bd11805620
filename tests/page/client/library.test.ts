import { describe, expect, it } from 'bun:test';
import { createGatewayClient } from '../../../src/client/gateway-client.ts';
import { recorded, rejection, shareSignedIn } from './page.ts';

const BASE = 'https://api.studio.test';
const client = createGatewayClient({ baseUrl: BASE });
const PATCH = 'PATCH /v1/music/creations/7';

describe('the library', () => {
  const signedIn = shareSignedIn();

  it.each([
    ['under data', { data: [{ id: '1' }], total: 1 }, [{ id: '1' }]],
    ['bare', [{ id: '1' }], [{ id: '1' }]],
    ['with data that is null', { data: null }, null],
    ['with a list of its own', { items: [] }, { items: [] }],
  ])('gives models, creations and other data %s', async (_, body, data) => {
    const { world, client } = signedIn();
    for (const call of ['GET /v1/models', 'GET /v1/music/creations', 'GET /v1/activity?limit=5']) {
      world.upstream.on(call, () => Response.json(body));
    }
    expect(await client.models()).toEqual(data);
    expect(await client.creations()).toEqual(data);
    expect(await client.upstreamData('/v1/activity?limit=5')).toEqual(data);
  });

  it('gives undefined for a response without content', async () => {
    const { world, client } = signedIn();
    for (const call of ['GET /v1/models', PATCH]) {
      world.upstream.on(call, () => new Response(null, { status: 204 }));
    }
    expect(await client.models()).toBeUndefined();
    expect(await client.setVisibility('7', true)).toBeUndefined();
  });

  it.each([true, false])('changes the visibility of a track to public: %p', async (isPublic) => {
    const { world, client } = signedIn();
    world.upstream.on(PATCH, () => Response.json({ data: { id: '7', is_public: isPublic } }));
    expect(await client.setVisibility('7', isPublic)).toEqual({ id: '7', is_public: isPublic });
    const { body, headers } = world.upstream.last(PATCH);
    expect(JSON.parse(body)).toEqual({ is_public: isPublic });
    expect(headers.get('content-type')).toBe('application/json');
  });
});

describe('any other path of the upstream', () => {
  const signedIn = shareSignedIn();

  it('gives the response as it is to the request as it was', async () => {
    const { world, client } = signedIn();
    const call = 'GET /v1/music/creations/7/content';
    const sent = { 'content-range': 'bytes 2-4/9', 'content-type': 'audio/wav' };
    world.upstream.on(call, () => new Response('dio', { status: 206, headers: sent }));
    const headers = { range: 'bytes=2-4' };
    const response = await client.upstream('/v1/music/creations/7/content', { headers });
    expect([response.status, response.headers.get('content-range')]).toEqual([206, 'bytes 2-4/9']);
    expect(await response.text()).toBe('dio');
    expect(world.upstream.last(call).headers.get('range')).toBe('bytes=2-4');
  });

  it('is asked with the cookies, whatever the request says', async () => {
    const { fetch, sent } = recorded(async () => new Response());
    const client = createGatewayClient({ baseUrl: BASE, fetch });
    await client.upstream('/v1/me', { method: 'DELETE', credentials: 'omit', body: 'x' });
    const init = { method: 'DELETE', credentials: 'include', body: 'x' };
    expect(sent).toMatchObject([{ url: `${BASE}/api/upstream/v1/me`, init }]);
  });

  it('fails with the reason of its signal when it is aborted', async () => {
    const { world, client } = signedIn();
    const late = Promise.withResolvers<Response>();
    world.upstream.on('GET /v1/activity', () => late.promise);
    const abort = new AbortController();
    const response = client.upstream('/v1/activity', { signal: abort.signal });
    await world.upstream.arrived('GET /v1/activity');
    abort.abort();
    expect(await rejection(response)).toBe(abort.signal.reason);
    late.resolve(new Response());
  });
});

const ODD_IDS = ['a/b', 'a?b', 'a#b', 'a b', '..%2F..', '&;=+', '...', '\u{1f3b5}'];

describe('the address of a track', () => {
  const signedIn = shareSignedIn();

  it.each(['', '//'])('is below a base address that ends with %p', (slashes) => {
    const based = createGatewayClient({ baseUrl: `${BASE}/gateway${slashes}` });
    expect(based.contentUrl('7')).toBe(`${BASE}/gateway/api/upstream/v1/music/creations/7/content`);
    expect(based.publicContentUrl('7')).toBe(`${BASE}/gateway/api/upstream/v1/music/public/7/content`);
  });

  it.each(ODD_IDS)('holds the id %p as one segment', (id) => {
    for (const address of [client.contentUrl(id), client.publicContentUrl(id)]) {
      const { pathname, search, hash } = new URL(address);
      const segments = pathname.split('/');
      expect([search, hash, segments.length]).toEqual(['', '', 8]);
      expect(decodeURIComponent(segments[6] ?? '')).toBe(id);
    }
  });

  it.each(['.', '../../browser'])(
    'leads nowhere else with the id %p, which a browser would resolve',
    async (id) => {
      const { world, page, client } = signedIn();
      const asked = world.upstream.calls.length;
      for (const address of [client.contentUrl(id), client.publicContentUrl(id)]) {
        expect((await page.fetch(address, { credentials: 'include' })).status).toBe(404);
      }
      const error = await rejection(client.setVisibility(id, true));
      expect(error).toMatchObject({ status: 404, retryIsSafe: true });
      expect(world.upstream.calls).toHaveLength(asked);
    },
  );

  it.each(ODD_IDS.filter((id) => !/[/%]/.test(id)))('changes the track %p and no other', async (id) => {
    const { world, client } = signedIn();
    const path = `/v1/music/creations/${encodeURIComponent(id)}`;
    world.upstream.on(`PATCH ${path}`, () => Response.json({ id }));
    expect(await client.setVisibility(id, true)).toEqual({ id });
  });
});

describe('the fetch of a client', () => {
  it('is called as a function, as a browser demands, and looked up when it is needed', async () => {
    const receivers: unknown[] = [];
    function fetch(this: unknown): Promise<Response> {
      receivers.push(this);
      return Promise.resolve(Response.json([]));
    }
    await createGatewayClient({ baseUrl: BASE, fetch }).models();
    const own = globalThis.fetch;
    try {
      globalThis.fetch = Object.assign(fetch.bind(undefined), { preconnect: own.preconnect });
      expect(await client.models()).toEqual([]);
    } finally {
      globalThis.fetch = own;
    }
    expect(receivers).toEqual([undefined, undefined]);
  });
});
