/** Runs one schedule: clients, two instances, Redis and an upstream, in the order that the scheduler chooses. */

import { RefreshCoordinator } from '../../../src/gateway/refresh/coordinator.ts';
import { RedisConnection } from '../../../src/gateway/refresh/redis-connection.ts';
import { RedisReplayStore } from '../../../src/gateway/refresh/redis-store.ts';
import type { UpstreamApi } from '../../../src/gateway/upstream/upstream-api.ts';
import { newLedger, newRequestRecord } from '../../support/refresh-coordinator.ts';
import { settings } from './facts.ts';
import { History, type Outage, type Token } from './history.ts';
import type { Command, Plan } from './plans.ts';
import { RedisModel, redisNetwork } from './redis-model.ts';
import { upstreamModel } from './upstream-model.ts';
import { ProcessClock, type Scheduler, Stuck, VirtualTime } from './virtual-time.ts';

/** Long enough for whatever goes on when every request has ended. */
const QUIET_MS = 30_000;

/** What runs until it crashes. */
export interface Process {
  /** Such as `B2` after a crash of `B1`. */
  readonly name: string;
  readonly clock: ProcessClock;
  readonly connection: RedisConnection;
  readonly upstream: UpstreamApi;
  readonly shared: RefreshCoordinator;
}

interface World {
  readonly time: VirtualTime;
  readonly history: History;
  readonly redis: RedisModel;
  readonly upstream: ReturnType<typeof upstreamModel>;
  /** Applied to each process when it starts, so that the checks have something to object to. */
  readonly change: (process: Process) => void;
}

export async function runSchedule(
  scheduler: Scheduler,
  plan: Plan,
  change: World['change'] = () => {},
): Promise<History> {
  const { clocksAheadMs, fates, expiresInSeconds, commands } = plan;
  const time = new VirtualTime(scheduler);
  const history = new History(time, expiresInSeconds * 1000);
  const redis = new RedisModel(() => time.now + clocksAheadMs[2]);
  const upstream = upstreamModel(time, history, fates, expiresInSeconds);
  try {
    await carryOut({ time, history, redis, upstream, change }, clocksAheadMs, commands);
  } catch (cause) {
    if (!(cause instanceof Stuck)) throw cause;
    history.stuck = cause.message;
  }
  return history;
}

async function carryOut(
  world: World,
  [aheadA, aheadB]: Plan['clocksAheadMs'],
  commands: readonly Command[],
): Promise<void> {
  const { time, history, redis } = world;
  const instances = [startInstance(world, 'A', aheadA), startInstance(world, 'B', aheadB)] as const;
  /** What clients have received, the newest last. */
  const received = [world.upstream.signIn()];
  /** What is in flight, by the process that does it. */
  const inFlight = new Map<Promise<void>, Process>();

  const setNetworks = (state: 'up' | 'cut') => {
    for (const each of instances) each.setNetwork(state);
  };
  const carryOutOne = (command: Command) => {
    const instance = instances[command.instance];
    const { process } = instance;
    const token = received.at(-1 - (command.token % received.length));
    if (!token) throw new Error('no token was received');
    const start = async (work: Promise<Token | undefined>) => {
      const done = work.then((given) => void (given && !received.includes(given) && received.push(given)));
      inFlight.set(done, process);
      await done;
      inFlight.delete(done);
    };
    const kinds: Record<Command['kind'], () => unknown> = {
      request: () => start(request(world, process, token, command)),
      presentation: () => {
        history.present({ token, instance: process.name });
        process.shared.presented.note(token.text);
      },
      'sign-out': () => start(signOut(world, process, token)),
      'sign-in': () => start(end(world, process, token).then(() => world.upstream.signIn())),
      crash: () => instance.crash(),
      'Redis restarts': () => {
        redis.empty();
        setNetworks('cut');
      },
      'Redis is cut off': () => instance.setNetwork('cut'),
      'Redis stalls': () => instance.setNetwork('stalled'),
      'Redis is back': () => setNetworks('up'),
    };
    kinds[command.kind]();
  };

  for (const command of commands) {
    await time.pass(command.afterMs);
    carryOutOne(command);
  }
  setNetworks('up');
  const isDone = () =>
    [...inFlight.values()].every(({ clock }) => !clock.isAlive) &&
    instances.every(({ isConnected }) => isConnected);
  await time.run(isDone);
  const doneAt = time.now;
  await time.run(() => time.isIdle || time.now > doneAt + QUIET_MS);
  for (const { process } of instances) history.timersLeft += time.timersOf(process.clock);
}

/** @returns the token that the client receives, if any */
async function request(
  { history, upstream }: World,
  { name, shared, clock }: Process,
  token: Token,
  { asksAfterMs, callMs }: Command,
): Promise<Token | undefined> {
  const request = history.request({ token, instance: name });
  shared.presented.note(token.text);
  const arrivedAt = clock.now();
  if (asksAfterMs > 0) await clock.sleep(asksAfterMs);
  request.asked = history.moment(`the request with ${token.text} at ${name} asks for a refresh`);
  const outcome = await shared.refresh(token.text, request.record, arrivedAt);
  const reuse = request.record.refreshTokenReused ? ', counted as a reuse' : '';
  request.ended = history.moment(`the request with ${token.text} at ${name}: ${outcome.kind}${reuse}`);
  request.outcome = outcome.kind;
  if (outcome.kind !== 'renewed') return undefined;
  request.pair = upstream.tokenWith(outcome.pair.refreshToken);
  if (callMs > 0) await clock.sleep(callMs);
  request.leaves = history.moment(`the response with ${request.pair.text} leaves ${name}`);
  const newest = await shared.newest(outcome.pair);
  if (newest) request.given = upstream.tokenWith(newest.refreshToken);
  return request.given;
}

async function signOut(world: World, process: Process, token: Token): Promise<undefined> {
  const { newest, hadEnded } = await end(world, process, token);
  const pairs = [...(hadEnded ? [] : [world.upstream.pairOf(token)]), ...(newest ? [newest] : [])];
  await Promise.allSettled(pairs.map((pair) => process.upstream.signOut(pair, newRequestRecord())));
}

async function end({ history }: World, { name, shared }: Process, token: Token) {
  const signOut = history.signOut({ token, instance: name });
  const ended = await shared.end(token.text);
  signOut.ended = history.moment(`the sign-out of ${token.text} at ${name} is over`);
  return ended;
}

/** One instance of the gateway, as far as it coordinates refreshes: the real code on a virtual clock and network. */
function startInstance(
  { time, history, redis, upstream: model, change }: World,
  letter: string,
  aheadMs: number,
) {
  const network = redisNetwork(time, redis);
  let starts = 0;
  let outage: Outage | undefined;
  const outageBegins = () => {
    if (outage) return;
    outage = { began: history.moment(`${letter} has no Redis`) };
    history.outages.push(outage);
  };
  const outageMayEnd = () => {
    if (!outage || !instance.isConnected) return;
    outage.ended = history.moment(`${letter} has Redis again`);
    outage = undefined;
  };
  const start = () => {
    const name = `${letter}${++starts}`;
    const clock = new ProcessClock(time, aheadMs);
    const observer = { onDown: outageBegins, onUp: () => queueMicrotask(outageMayEnd) };
    const connection = new RedisConnection('redis://model', observer, clock, () => network.open(clock));
    const store = new RedisReplayStore(connection, newLedger(), clock.now);
    const upstream = model.endpoints(clock, name);
    const shared = new RefreshCoordinator(settings, store, upstream, clock);
    const process: Process = { name, clock, connection, upstream, shared };
    change(process);
    return process;
  };
  const instance = {
    process: start(),
    get isConnected(): boolean {
      return network.isUp() && this.process.connection.isUp;
    },
    /** The process dies, and another one takes its place with nothing in its memory. */
    crash() {
      const { name, clock } = this.process;
      history.crashes.set(name, history.moment(`${name} crashes`));
      clock.crash();
      network.crash();
      this.process = start();
    },
    setNetwork(state: 'up' | 'cut' | 'stalled') {
      if (state !== 'up') outageBegins();
      network.become(state);
      outageMayEnd();
    },
  };
  return instance;
}
