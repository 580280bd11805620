import { beforeEach, describe, expect, it, spyOn } from 'bun:test';
import { Admission } from '../../../src/gateway/admission/admission.ts';
import { Exchange } from '../../../src/gateway/exchange/exchange.ts';
import { OpenExchanges } from '../../../src/gateway/exchange/open-exchanges.ts';
import { messages } from '../../../src/gateway/http/messages.ts';
import type { RequestRecord } from '../../../src/gateway/record/request-record.ts';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { Telemetry } from '../../../src/gateway/telemetry/telemetry.ts';
import { fill } from '../../support/long-calls.ts';
import { samplesOf } from '../../support/metrics.ts';
import { type RecordedLog, recordLog } from '../../support/recorded-log.ts';
import { GENERATE } from '../../support/routes.ts';
import { startWorld, testSettings } from '../../support/world.ts';

const MODELS = '/api/music/models';

let log: RecordedLog;
let metrics: Metrics;
let telemetry: Telemetry;
let exchanges: OpenExchanges;
beforeEach(() => {
  log = recordLog();
  metrics = new Metrics();
  const paths = ['/api/health', MODELS, '/api/upstream/*'];
  const routes = [{ method: 'OPTIONS', path: '/*' }, ...paths.map((path) => ({ method: 'GET', path }))];
  telemetry = new Telemetry({ logger: log.logger, metrics, routes: () => routes, quietRoute: '/api/health' });
  exchanges = new OpenExchanges(telemetry);
});

/** A request with these facts on record. */
function observe({ status = 200, ...facts }: Partial<RequestRecord> = {}, path = MODELS, method = 'GET') {
  const exchange = new Exchange(new Request(`http://gateway.test${path}`, { method }), null);
  Object.assign(exchange.record, facts);
  exchanges.run(exchange, () => new Response(null, { status }));
}

/** Samples that are undefined must not exist. */
async function expectSamples(expected: Record<string, number | undefined>) {
  const found = await samplesOf(metrics.registry);
  const values = Object.keys(expected).map((name) => [name, found.get(name)]);
  expect(Object.fromEntries(values)).toEqual(expected);
}

describe('a request', () => {
  const OF_MODELS = `{route="${MODELS}"}`;
  const requests = (status: string) => `requests_total{route="${MODELS}",method="GET",status="${status}"}`;
  const refreshed = (outcome: number) => ({ calls: [{ call: 'refresh', outcome, ms: 1 } as const] });

  it.each<[Partial<RequestRecord>, level: string, ...counted: string[]]>([
    [{}, 'info', requests('2xx'), `response_head_seconds_count${OF_MODELS}`],
    [{ status: 401, reason: 'notSignedIn' }, 'info', requests('4xx'), 'errors_total{reason="notSignedIn"}'],
    [{ status: 401, reason: 'clientRefused' }, 'warn', 'errors_total{reason="clientRefused"}'],
    [{ status: 502 }, 'warn', requests('5xx')],
    [{ status: 500, reason: 'internalError' }, 'error', 'errors_total{reason="internalError"}'],
    [{ tokenProblem: 'no refresh_token' }, 'warn', requests('2xx')],
    [{ refresh: 'renewed' }, 'info', 'refreshes_total{outcome="renewed"}'],
    [{ refreshTokenReused: 'late' }, 'warn', 'refresh_token_reuses_total{why="late"}'],
    [refreshed(503), 'warn', 'upstream_seconds_count{call="refresh",outcome="5xx"}'],
    [refreshed(400), 'info', 'upstream_seconds_bucket{le="0.005",call="refresh",outcome="4xx"}'],
    [{ slices: 3 }, 'info', `slices_total${OF_MODELS}`],
    [{ bytes: 9 }, 'info', `sent_bytes_total${OF_MODELS}`],
    [{ brokenBody: true }, 'warn', `broken_bodies_total${OF_MODELS}`],
    [{ cutOff: 'no memory' }, 'warn', 'cut_off_total{call="none",why="no memory"}'],
    [{ cutOff: 'stopped reading' }, 'info', 'cut_off_total{call="none",why="stopped reading"}'],
    [{ clientGone: 'streaming' }, 'info', `client_aborts_total{route="${MODELS}",phase="streaming"}`],
  ])('with %j is logged at the level %s, and counted', async (facts, level, ...counted) => {
    observe(facts);
    const { calls, status = 200, ...others } = facts;
    expect(log.lines).toMatchObject([{ level, status, ...others, ...(calls && { upstream: calls }) }]);
    await expectSamples(Object.fromEntries(counted.map((name) => [name, facts.slices ?? facts.bytes ?? 1])));
  });

  it('whose client disconnected before the response is no failure, because nobody received one', async () => {
    observe({ clientGone: 'waiting', status: 502, reason: 'upstreamUnreachable', cause: 'Error', bytes: 5 });
    expect(log.lines).toMatchObject([{ level: 'info', clientGone: 'waiting', bytes: 0 }]);
    expect(log.lines[0]).not.toContainAnyKeys(['reason', 'cause']);
    await expectSamples({
      ...{ [requests('none')]: 1, [`client_aborts_total{route="${MODELS}",phase="waiting"}`]: 1 },
      [requests('5xx')]: undefined,
      'errors_total{reason="upstreamUnreachable"}': 0,
    });
  });

  it.each([
    ['GET', '/api/health', '/api/health', 'debug'],
    ['GET', '/api/upstream/v1/library/a?q=b', '/api/upstream/*', 'info'],
    ['GET', '/api/upstreams', 'unmatched', 'info'],
    ['OPTIONS', MODELS, MODELS, 'debug'],
    ['OPTIONS', '/anywhere', 'unmatched', 'debug'],
    ['PROPFIND', `${MODELS}?a`, MODELS, 'info'],
  ])('%s %s has the route %s and the level %s', async (method, path, route, level) => {
    observe({}, path, method);
    const known = method === 'PROPFIND' ? 'other' : method;
    expect(log.lines).toMatchObject([{ method: known, route, level }]);
    await expectSamples({ [`requests_total{route="${route}",method="${known}",status="2xx"}`]: 1 });
  });
});

describe('the metrics', () => {
  it('have every error from the start, so that its first occurrence is an increase', async () => {
    const errors = Object.keys(messages.en).map((reason) => `errors_total{reason="${reason}"}`);
    const reuses = ['presented', 'late'].map((why) => `refresh_token_reuses_total{why="${why}"}`);
    await expectSamples(Object.fromEntries([...errors, ...reuses].map((name) => [name, 0])));
  });

  it('count the generations that a repetition would make twice', async () => {
    await expectSamples({ unkeyed_generations_total: 0 });
    await using world = startWorld({}, metrics);
    world.upstream.on('POST /v1/music', () => new Response('audio'));
    for (const headers of [{ 'idempotency-key': 'a' }, {}])
      await (await world.request(GENERATE.path, { ...GENERATE.options, headers })).text();
    await world.settled();
    await expectSamples({ unkeyed_generations_total: 1 });
  });

  it('say whether Redis responds, before any request has needed it, and the log says when that changes', async () => {
    await expectSamples({ redis_up: undefined });
    const { onUp, onDown } = telemetry.redisObserver();
    for (const isUp of [1, 0, 1, 1]) {
      if (isUp) onUp();
      else onDown('Error');
      await expectSamples({ redis_up: isUp });
    }
    expect(log.lines).toMatchObject([{ level: 'warn', cause: 'Error' }, { level: 'info' }]);
    metrics = new Metrics();
    await using world = startWorld({ REDIS_URL: 'redis://127.0.0.1:1' }, metrics);
    await world.line({ level: 'warn' });
    await expectSamples({ redis_up: 0 });
  });

  it('show each pool’s limit, use and refusals, and the memory that is promised', async () => {
    const admission = new Admission(testSettings({ MAX_IN_FLIGHT_PER_SESSION: '1' }));
    metrics.watch(admission);
    const { identityProvider, sessions, signOuts, reads, streams, ledger, memoryLimitBytes } = admission;
    const pools = [identityProvider, sessions, signOuts, reads, streams, ledger];
    for (const [at, pool] of pools.entries()) pool.inUse = at + 1;
    using _charged = spyOn(ledger, 'charged').mockReturnValue(8);
    const ofPools = (name: string, values: Record<string, number>) =>
      Object.fromEntries(Object.entries(values).map(([pool, value]) => [`${name}{pool="${pool}"}`, value]));
    const inUse = { identity_provider: 1, session: 2, sign_out: 3, read: 4, stream: 5, memory: 6 };
    const most = { identity_provider: 250, session: 450, sign_out: 200, read: 750, stream: 4000 };
    const ownBytes = memoryLimitBytes - ledger.limit;
    await expectSamples({
      ...ofPools('places_in_use', inUse),
      ...ofPools('places_limit', { ...most, memory: ledger.limit }),
      memory_promised_bytes: ownBytes + 6,
      memory_charged_bytes: ownBytes + 8,
      memory_limit_bytes: memoryLimitBytes,
    });

    const { perSession, signInBodies, orderBodies, relayedBodies } = admission;
    perSession.count(perSession.useOf('a', false), false, 1);
    fill(streams);
    const holder = { permit: undefined };
    const refused = {
      stream: () => admission.enter('get', 'b', holder),
      one_session: () => admission.enter('read', 'a', holder),
      sign_in_body: () => signInBodies.grow(signInBodies.open(0), ledger.limit),
      order_body: () => orderBodies.grow(orderBodies.open(0), ledger.limit),
      relayed_body: () => relayedBodies.grow(relayedBodies.open(0), ledger.limit),
    };
    // The first once, the second twice, and so on.
    for (const [before, refuse] of Object.values(refused).entries())
      for (let times = 0; times <= before; times++) expect(refuse).toThrow();
    const none = { identity_provider: 0, session: 0, sign_out: 0, read: 0, memory: 0 };
    const counted = { ...none, stream: 1, one_session: 2, sign_in_body: 3, order_body: 4, relayed_body: 5 };
    // Twice: a counter must not grow by being read.
    for (const _ of [1, 2]) await expectSamples(ofPools('refused_total', counted));
  });
});
