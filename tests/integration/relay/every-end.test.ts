import { expect, it, jest } from 'bun:test';
import { once } from 'node:events';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { fill } from '../../support/long-calls.ts';
import { samplesOf } from '../../support/metrics.ts';
import type { LogLine } from '../../support/recorded-log.ts';
import { ROUTES, scriptRoutes } from '../../support/routes.ts';
import { type RequestOptions, SIGNED_IN, startWorld, type World } from '../../support/world.ts';

/** More than the kernel buffers, so that a body that nobody reads does not end. */
const LARGE = new Uint8Array(16 * 1024 * 1024);
const POOLS = ['identityProvider', 'sessions', 'signOuts', 'reads', 'streams'] as const;
const LOGOUT = { path: '/api/auth/logout', options: { method: 'POST', cookie: SIGNED_IN } };
const LOGOUT_CALL = 'POST /v1/auth/logout';
const CALLS = [...ROUTES.map(({ calls }) => calls.at(-1) ?? ''), LOGOUT_CALL];
/** Every route, and what is responded to without a call. */
const REQUESTS: readonly { readonly path: string; readonly options: RequestOptions }[] = [
  ...ROUTES,
  LOGOUT,
  { path: '/api/health', options: {} },
  { path: '/api/nowhere', options: {} },
  { path: LOGOUT.path, options: { method: 'PUT' } },
  { path: LOGOUT.path, options: { method: 'OPTIONS', headers: { 'access-control-request-method': 'POST' } } },
];

/** Whether a call is aborted upstream when its client leaves: sign-ins, sign-outs and generations go on. */
const isUseless = (call: string) => !/auth|music(?:\?|$)/.test(call);

interface End {
  readonly name: string;
  /** What the log says of one of the exchanges at least. */
  readonly line: LogLine;
  /** Changes each request. */
  readonly options?: RequestOptions;
  /** What happens before the requests. */
  readonly first?: (world: World) => void;
  readonly respond: (until: Promise<void>) => Response | Promise<Response>;
  /** Those that arrive at the upstream; unless given, the last of each route. */
  readonly calls?: readonly string[];
  /** What happens when these calls have arrived. */
  readonly act?: (world: World, clients: AbortController, heads: readonly Promise<Response>[]) => unknown;
}

const ok = () => new Response('ok');
const large = () => new Response(LARGE);
const lateHead = (until: Promise<void>) => until.then(ok);
const begunBody = (until: Promise<void>) => {
  const chunks = async function* () {
    yield 'begun';
    await until;
  };
  return new Response(chunks());
};

function fillLedger({ admission }: World): void {
  fill(admission.ledger);
}

/** What has arrived is handled before the next second begins. */
async function passSilence({ request }: World): Promise<void> {
  for (let second = 0; second < 70; second++) {
    await request('/api/health');
    jest.advanceTimersByTime(1000);
  }
}

const EVIL = { origin: 'http://evil.test' };
/** Once the bodies have begun. */
const begun = (act: (world: World) => unknown) => (world: World) => world.roundTrip().then(() => act(world));
const stopUpstream = ({ upstream }: World) => upstream.stop();

const ENDS: readonly End[] = [
  { name: 'a success', line: { status: 200 }, respond: ok },
  { name: 'a failure', line: { status: 500 }, respond: () => new Response('no', { status: 500 }) },
  { name: 'a refusal', line: { status: 403 }, options: EVIL, respond: large, calls: [] },
  { name: 'a full ledger', line: { status: 503 }, first: fillLedger, respond: large, calls: [] },
  {
    name: 'a client that leaves before the head',
    line: { clientGone: 'waiting' },
    respond: lateHead,
    act: async ({ line, upstream }, clients) => {
      clients.abort();
      await line({ clientGone: 'waiting' });
      const useless = upstream.received.filter(({ target }) => isUseless(target));
      expect(useless).toHaveLength(CALLS.filter(isUseless).length);
      await Promise.all(useless.map(({ signal }) => signal.aborted || once(signal, 'abort')));
    },
  },
  {
    name: 'a client that leaves in the body',
    line: { clientGone: 'streaming' },
    respond: large,
    act: (_, clients, heads) => Promise.allSettled(heads).then(() => clients.abort()),
  },
  {
    name: 'an upstream that is silent in the body',
    line: { cause: 'stalled' },
    first: () => void jest.useFakeTimers(),
    respond: begunBody,
    act: passSilence,
  },
  { name: 'an upstream that breaks off', line: { status: 502 }, respond: lateHead, act: stopUpstream },
  { name: 'a broken body', line: { brokenBody: true }, respond: begunBody, act: begun(stopUpstream) },
  { name: 'a stop', line: { cutOff: 'shutdown' }, respond: begunBody, act: begun(({ endAll }) => endAll()) },
];

// A generation without memory for its audio: faults/ledger.test.ts. A fault of a later slice: faults/slices.test.ts.
it.each(ENDS)('every exchange ends once after $name, on every route', async (end) => {
  const metrics = new Metrics();
  // The deadline of a read would abort its call, too.
  const times = { TIMEOUT_LOGOUT_MS: '2000', TIMEOUT_READ_MS: '280000' };
  await using world = startWorld(times, metrics, 256 * 1024 ** 2);
  const { ledger, perSession, signInBodies, orderBodies, relayedBodies, ...pools } = world.admission;
  const released = Promise.withResolvers<void>();
  const calls = end.calls ?? CALLS;
  scriptRoutes(world);
  // It leaves a fact, which the later one replaces.
  await world.request(LOGOUT.path, LOGOUT.options);
  for (const call of CALLS) world.upstream.on(call, () => end.respond(released.promise));
  end.first?.(world);
  const taken = ledger.inUse;
  const clients = new AbortController();
  const heads = REQUESTS.map(({ path, options }, id) => {
    const headers = { ...options.headers, ...end.options?.headers, 'x-request-id': `request-${id}` };
    return world.request(path, { ...options, ...end.options, headers, signal: clients.signal });
  });
  const ended = heads.map((head) => head.then((response) => response.bytes()).catch(() => {}));
  for (const call of calls) await world.upstream.arrived(call, call === LOGOUT_CALL ? 2 : 1);
  await end.act?.(world, clients, heads);
  released.resolve();
  jest.useRealTimers();
  await Promise.all(ended);
  await world.settled();
  expect(world.lines).toContainEqual(expect.objectContaining(end.line));
  const ids = world.lines.map(({ requestId }) => requestId).filter((id) => /^request-/.test(String(id)));
  expect(ids.sort()).toEqual(REQUESTS.map((_, id) => `request-${id}`).sort());
  expect([ledger.inUse - taken, ledger.expected, perSession.size]).toEqual([0, 0, 0]);
  for (const { usedBytes } of [signInBodies, orderBodies, relayedBodies]) expect(usedBytes).toBe(0);
  expect(POOLS.map((pool) => pools[pool].inUse)).toEqual([0, 0, 0, 0, 0]);
  const samples = await samplesOf(metrics.registry);
  const inFlight = [...samples].filter(([name, value]) => /^requests_in_flight/.test(name) && value !== 0);
  expect(inFlight).toEqual([]);
});
