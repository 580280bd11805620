/** A generation of the upstream's own form: what is as for any proxied call. What is as for a generation: every-route.test.ts, streaming.test.ts, faults/ledger.test.ts. */

import { expect, it } from 'bun:test';
import { CALL_BYTES } from '../../../src/gateway/admission/prices.ts';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { samplesOf } from '../../support/metrics.ts';
import { OWN_FORM } from '../../support/routes.ts';
import { pair, REFRESH } from '../../support/session-calls.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { ACCESS_ONLY, type RequestOptions, SIGNED_IN, startWorld } from '../../support/world.ts';

const PATH = '/api/upstream/v1/music';
const MUSIC = 'POST /v1/music';
/** No JSON that the gateway would accept for a generation of its own. */
const ORDER = '{"lyrics": "Rain",  "seed": 7, "is_public": "maybe"';
const UNBUFFERED = { 'x-accel-buffering': 'no', incremental: '?1' };

const world = sharedWorld();

function order(path = PATH, options: RequestOptions = {}): Promise<Response> {
  const headers = { 'content-type': 'application/json; charset=utf-8', 'idempotency-key': 'k-1' };
  return world.request(path, { method: 'POST', cookie: SIGNED_IN, body: ORDER, headers, ...options });
}

it('an order is sent byte for byte, with its key, and again after a 401', async () => {
  world.upstream
    .on(REFRESH, () => Response.json(pair(2)))
    .on(MUSIC, ({ headers }) => {
      const isRenewed = headers.get('authorization') === 'Bearer access-2';
      return new Response('x'.repeat(20_000), { status: isRenewed ? 200 : 401 });
    });
  const response = await order();
  expect([response.status, (await response.bytes()).length]).toEqual([200, 20_000]);
  expect(world.upstream.calls).toEqual([MUSIC, REFRESH, MUSIC]);
  const { body, headers } = world.upstream.last(MUSIC);
  expect([body, headers.get('idempotency-key')]).toEqual([ORDER, 'k-1']);
});

it.each([
  [200, 'audio/wav', 'audio'],
  [200, 'audio/wav', 'a'.repeat(100_000)],
  [202, 'application/json', '{"job_id":"7"}'],
  [204, 'text/plain', null],
  [401, 'application/json', '{"code":"no_plan"}'],
  [402, 'application/json', `{"code":"no_credits"}${' '.repeat(20_000)}`],
  [500, 'text/html', ''],
])(
  'a %d of %s passes as the upstream gave it, with the headers that pass: case %#',
  async (status, type, body) => {
    const passes = {
      'content-type': type,
      etag: '"1"',
      'x-music-creation-id': 'c-1',
      'x-ratelimit-remaining': '3',
      'retry-after': '7',
    };
    const headers = { ...passes, location: '/base/v1/jobs/7', 'x-upstream': 'node-7' };
    world.upstream.on(MUSIC, () => new Response(body, { status, headers }));
    const response = await order(PATH, { cookie: ACCESS_ONLY });
    expect([response.status, await response.text()]).toEqual([status, body ?? '']);
    const own = { location: '/api/upstream/v1/jobs/7', 'cache-control': 'private', vary: 'Origin, Cookie' };
    expect(Object.fromEntries(response.headers)).toMatchObject({ ...passes, ...own, ...UNBUFFERED });
    expect([response.headers.has('x-upstream'), world.upstream.calls]).toEqual([false, [MUSIC]]);
  },
);

it.each<[what: string, call: string, path: string, options: RequestOptions, calls: number]>([
  ['an order', MUSIC, PATH, {}, 1],
  ['an order with a query', 'POST /v1/music?form=own', `${PATH}?form=own`, {}, 1],
  ['another type', MUSIC, PATH, { headers: { 'content-type': 'application/json-patch+json' } }, 0],
  ['another method', 'PUT /v1/music', PATH, { method: 'PUT' }, 0],
  ['a path below it', 'POST /v1/music/7', `${PATH}/7`, {}, 0],
  ['a path that ends with a slash', 'POST /v1/music/', `${PATH}/`, {}, 1],
  ['a path in another spelling', 'POST /v1//%4dusic', '/api/upstream/v1//%4dusic', {}, 1],
  ['a path with an escape that stays', 'POST /v1/%25', '/api/upstream/v1/%25', {}, 0],
])(
  '%s, %s, is a generation only at its path, however that is spelled, with POST and JSON',
  async (_, call, path, options, generations) => {
    const { perSession, ledger } = world.admission;
    let counted: number | undefined;
    world.upstream.on(call, () => {
      counted = perSession.useOf('access-1', false).generations;
      return new Response('done');
    });
    const response = await order(path, options);
    expect([response.status, counted]).toEqual([200, generations]);
    expect(response.headers.get('x-accel-buffering')).toBe(generations ? 'no' : null);
    await world.settled();
    expect(ledger.inUse).toBeLessThan(CALL_BYTES);
  },
);

it('an order without a key is counted as one that a repetition would pay for again', async () => {
  const metrics = new Metrics();
  await using counting = startWorld({}, metrics);
  counting.upstream.on(OWN_FORM.calls.join(), () => new Response('audio'));
  const headers = { 'idempotency-key': 'k-1' };
  for (const options of [OWN_FORM.options, { ...OWN_FORM.options, headers }])
    await (await counting.request(OWN_FORM.path, options)).text();
  await counting.settled();
  const samples = await samplesOf(metrics.registry);
  const unkeyed = [...samples].filter(([name]) => name.startsWith('unkeyed_generations_total'));
  expect(unkeyed.map(([, value]) => value)).toEqual([1]);
});
