import { describe, expect, it, spyOn } from 'bun:test';
import { createGatewayClient } from '../../../src/client/gateway-client.ts';
import { fakeTime, fastForward } from '../fake-time.ts';
import { BASE_URL, rejection, respond, stubGateway } from './gateway-stub.ts';

it.each([
  ['under data', '{"data":[{"id":"1"}],"total":1}', [{ id: '1' }]],
  ['bare', '[{"id":"1"}]', [{ id: '1' }]],
  ['with data that is null', '{"data":null}', null],
  ['that are empty', '', undefined],
])('the library gives models, creations and other data %s, and changes a creation', async (_, body, data) => {
  const { client, sent } = stubGateway(respond(200, {}, body));
  const calls: (() => Promise<unknown>)[] = [
    client.models,
    client.creations,
    () => client.creation('7'),
    () => client.upstreamData('/v1/activity?limit=5'),
    ...[true, false].map((isPublic) => () => client.setVisibility('7', isPublic)),
    () => client.rename('7', 'Snow "2"'),
  ];
  for (const call of calls) expect(await call()).toEqual(data);
  expect(await client.delete('../7').then(String)).toBe('undefined');
  const patch = 'PATCH /api/upstream/v1/music/creations/7';
  expect(sent.map(({ call, init, headers }) => [call, init.body, headers.get('content-type')])).toEqual([
    ['GET /api/music/models', undefined, null],
    ['GET /api/upstream/v1/music/creations', undefined, null],
    ['GET /api/upstream/v1/music/creations/7', undefined, null],
    ['GET /api/upstream/v1/activity?limit=5', undefined, null],
    [patch, '{"is_public":true}', 'application/json'],
    [patch, '{"is_public":false}', 'application/json'],
    [patch, '{"title":"Snow \\"2\\""}', 'application/json'],
    ['DELETE /api/upstream/v1/music/creations/..%2F7', undefined, null],
  ]);
});

it('what the page does with a response or not, its body is read to the end', async () => {
  const responses: Response[] = [];
  const { client } = stubGateway(() => {
    const response = new Response('{"ok":true}');
    responses.push(response);
    return response;
  });
  await client.signOut();
  await client.delete('7');
  expect(responses.map(({ bodyUsed }) => bodyUsed)).toEqual([true, true]);
});

it('any other path gives the response as it is to the request as it was, and always with the cookies', async () => {
  const response = new Response('dio', { status: 206 });
  const { client, sent } = stubGateway(() => response);
  const init = { method: 'POST', body: 'x', headers: { range: 'bytes=2-4' } };
  expect(await client.upstream('/v1/me', { ...init, credentials: 'omit' })).toBe(response);
  expect(sent).toMatchObject([
    { call: 'POST /api/upstream/v1/me', init: { credentials: 'include', body: 'x' } },
  ]);
  expect(sent[0]?.headers.get('range')).toBe('bytes=2-4');
});

describe('the address of a track', () => {
  it.each(['', '//'])('is below a base address that ends with %p', (slashes) => {
    const client = createGatewayClient({ baseUrl: `${BASE_URL}/gateway${slashes}` });
    const below = `${BASE_URL}/gateway/api/upstream/v1/music`;
    expect(client.contentUrl('7')).toBe(`${below}/creations/7/content`);
    expect(client.publicContentUrl('7')).toBe(`${below}/public/7/content`);
  });

  const ODD_IDS = ['a?b', 'a#b', '..%2F..', '../../studio', '&;=+', '...', '\u{1f3b5}'];
  it.each([
    ...ODD_IDS.map((id) => [id, id] as const),
    // A browser would resolve these, and the gateway refuses what is encoded twice.
    ['.', '%2E'],
    ['..', '%2E%2E'],
  ])('holds the id %p as one segment', (id, decoded) => {
    const { client } = stubGateway([]);
    for (const address of [client.contentUrl(id), client.publicContentUrl(id)]) {
      const { pathname, search, hash } = new URL(address);
      const segments = pathname.split('/');
      expect([search, hash, segments.length]).toEqual(['', '', 8]);
      expect(decodeURIComponent(segments[6] ?? '')).toBe(decoded);
    }
  });
});

describe('a creation', () => {
  const PATH = '/api/upstream/v1/music/creations/7';
  const GET = `GET ${PATH}`;
  const HEAD = `HEAD ${PATH}/content`;
  const late = respond(503, { 'retry-after': '100' });
  const record = respond(200, {}, '{"data":{"id":"7"}}');

  it('is awaited until its audio can be read, and then returned', async () => {
    const conflict = [record, respond(409)];
    const { client, sent } = stubGateway([...conflict, respond(503), record, respond(200), record]);
    expect(await fastForward(() => client.awaitCreation('7'))).toEqual({ id: '7' });
    expect(sent.map(({ call }) => call)).toEqual([GET, HEAD, GET, GET, HEAD, GET]);
  });

  it.each([
    ['generating', {}],
    ['queued', { isBeingMade: (creation: unknown) => JSON.stringify(creation).includes('queued') }],
  ])('whose record says %p is awaited without a request that fails', async (status, options) => {
    const being = respond(200, {}, JSON.stringify({ data: { status } }));
    const { client, sent } = stubGateway([being, being, record, respond(200), record], options);
    expect(await fastForward(() => client.awaitCreation('7'))).toEqual({ id: '7' });
    expect(sent.map(({ call }) => call)).toEqual([GET, GET, GET, HEAD, GET]);
  });

  it.each([0, 0.99])(
    'is asked for after waits that grow to eight seconds, in part by chance (%d), for ten minutes',
    async (chance) => {
      using _random = spyOn(Math, 'random').mockReturnValue(chance);
      const { client, sent } = stubGateway(respond(502));
      expect(await rejection(fastForward(() => client.awaitCreation('7')))).toMatchObject({ status: 502 });
      const times = sent.map(({ at }) => at);
      const waits = times.slice(1).map((time, index) => time - (times[index] ?? 0));
      for (const [index, longest] of [500, 1_000, 2_000, 4_000, 8_000, 8_000].entries()) {
        const wait = (longest * (1 + chance)) / 2;
        // It begins and ends at steps of the clock, of 50 ms.
        expect(waits[index]).toBeWithin(wait, wait + 100);
      }
      expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeWithin(590_000, 600_500);
    },
  );

  it('is not asked for before the time that a response names, except when the browser is online again', async () => {
    const advance = fakeTime();
    const { client, sent } = stubGateway([late, record]);
    const awaited = client.awaitCreation('7');
    for (let second = 0; second < 99; second++) await advance(1_000);
    expect(sent).toHaveLength(1);
    dispatchEvent(new Event('online'));
    expect(await awaited).toEqual({ id: '7' });
  });

  it('is no longer awaited after a refusal, nor once the signal is aborted between two attempts', async () => {
    const refused = stubGateway(respond(404)).client;
    expect(await rejection(refused.awaitCreation('7'))).toMatchObject({ status: 404 });
    const advance = fakeTime();
    const abort = new AbortController();
    const { client, sent } = stubGateway(late);
    const outcome = rejection(client.awaitCreation('7', { signal: abort.signal }));
    for (let second = 0; second < 9; second++) await advance(1_000);
    abort.abort('left');
    expect([await outcome, sent.length]).toEqual(['left', 1]);
  });
});
