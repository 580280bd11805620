/** Runs one schedule: clients, two instances, Redis and an upstream, in the order that the scheduler chooses. */

import { RefreshCoordinator } from '../../../src/gateway/refresh/coordinator.ts';
import { RedisConnection } from '../../../src/gateway/refresh/redis-connection.ts';
import { RedisReplayStore } from '../../../src/gateway/refresh/redis-store.ts';
import type { UpstreamApi } from '../../../src/gateway/upstream/upstream-api.ts';
import { newLedger } from '../../support/refresh-coordinator.ts';
import { Jar, request, signIn, signOut } from './browser.ts';
import { FASTEST_SIGN_IN_MS, History, settings, type Token } from './history.ts';
import { type Command, type Plan, STANDSTILL_MS } from './plans.ts';
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
  readonly upstream: UpstreamApi;
  readonly connection: RedisConnection;
  readonly store: RedisReplayStore;
  readonly shared: RefreshCoordinator;
}

export interface World {
  readonly time: VirtualTime;
  readonly history: History;
  readonly redis: RedisModel;
  readonly upstream: ReturnType<typeof upstreamModel>;
  /** What clients have received, the newest last. */
  readonly received: Token[];
  /** Applied to each process when it starts, so that the checks have something to object to. */
  readonly change: (process: Process) => void;
}

export async function runSchedule(
  scheduler: Scheduler,
  plan: Plan,
  change: World['change'] = () => {},
): Promise<History> {
  const { clocksAheadMs, fates, habits } = plan;
  const time = new VirtualTime(scheduler);
  const history = new History(time, habits.expiresInSeconds * 1000);
  const redis = new RedisModel(() => time.now + clocksAheadMs[2]);
  const upstream = upstreamModel(time, history, fates, habits);
  const received = [upstream.begin()];
  try {
    await carryOut({ time, history, redis, upstream, received, change }, plan);
  } catch (cause) {
    if (!(cause instanceof Stuck)) throw cause;
    history.unfinished.push(cause.message);
  }
  return history;
}

async function carryOut(world: World, { clocksAheadMs: [aheadA, aheadB], commands }: Plan): Promise<void> {
  const { time, history, redis, received } = world;
  const instances = [startInstance(world, 'A', aheadA), startInstance(world, 'B', aheadB)] as const;
  const browser = new Jar(world, received[0]);
  /** What is in flight, by the process that does it. */
  const inFlight = new Map<Promise<void>, Process>();

  const setNetworks = (state: 'up' | 'cut') => {
    for (const each of instances) each.setNetwork(state);
  };
  const carryOutOne = (command: Command) => {
    const { kind, isLost } = command;
    const instance = instances[command.instance];
    const { process } = instance;
    const copied = received.at(-1 - (command.token % received.length));
    if (!copied) throw new Error('no token was received');
    // A browser without cookies has nothing to refresh or to sign out.
    const isBrowser = command.token === 0 && browser.token !== undefined;
    const jar = isBrowser ? browser : new Jar(world, copied);
    const token = jar.token ?? copied;
    const sent = { world, process, jar, token, exchange: jar.send(), isLost };
    const start = async (work: () => Promise<void>) => {
      const done = new Promise<void>((resolve) => process.clock.reach(resolve)).then(work);
      inFlight.set(done, process);
      await done;
      inFlight.delete(done);
    };
    const startSignIn = () => {
      const sent = { world, process, jar: browser, exchange: browser.send(), isLost };
      void start(() => signIn(sent));
    };
    const kinds: Record<Command['kind'], () => unknown> = {
      request: () => start(() => request(sent, command)),
      presentation: () =>
        process.clock.reach(() => {
          history.present({ token, instance: process.name });
          process.shared.presented.note(token.text);
        }),
      'sign-out': () => start(() => signOut(sent)),
      'sign-in': () => {
        const fromMs = browser.token ? 0 : browser.lostAt + FASTEST_SIGN_IN_MS - time.now;
        if (fromMs > 0) time.timer(fromMs, startSignIn);
        else startSignIn();
      },
      'the browser loses its cookies': () => browser.lose(),
      'the upstream ends the session': () => {
        token.family.revoked ??= history.moment(`the upstream ends the session of ${token.text}`);
      },
      'the instance stands still': () => {
        const began = history.moment(`${process.name} stands still for ${STANDSTILL_MS} ms`);
        history.standstills.push({ instance: process.name, began });
        process.clock.standStill(STANDSTILL_MS);
      },
      crash: () => instance.crash(),
      'Redis restarts': () => {
        redis.empty();
        setNetworks('cut');
      },
      'Redis is cut off': () => instance.setNetwork('cut'),
      'Redis stalls': () => instance.setNetwork('stalled'),
      'Redis is back': () => setNetworks('up'),
    };
    kinds[kind]();
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
  if (instances.some(({ process }) => time.hasTimers(process.clock)))
    history.unfinished.push('a timer is left');
}

/** One instance of the gateway, as far as it coordinates refreshes: the real code on a virtual clock and network. */
function startInstance(
  { time, history, redis, upstream: model, change }: World,
  letter: string,
  aheadMs: number,
) {
  const network = redisNetwork(time, redis);
  let starts = 0;
  let isRedisUp = true;
  let outage: History['outages'][number] | undefined;
  const note = (isUp = isRedisUp) => {
    isRedisUp = isUp;
    if (instance.isConnected && outage) {
      outage.ended = history.moment(`${letter} has Redis again`);
      outage = undefined;
    } else if (!instance.isConnected && !outage) {
      outage = { began: history.moment(`${letter} has no Redis`) };
      history.outages.push(outage);
    }
  };
  const start = () => {
    const name = `${letter}${++starts}`;
    const clock = new ProcessClock(time, aheadMs);
    isRedisUp = true;
    const observer = { onDown: () => note(false), onUp: () => note(true) };
    const connection = new RedisConnection('redis://model', observer, clock, () => network.open(clock));
    const store = new RedisReplayStore(connection, newLedger(), clock.now);
    const upstream = model.endpoints(clock, name);
    const shared = new RefreshCoordinator(settings, store, upstream, clock);
    const process: Process = { name, clock, upstream, connection, store, shared };
    change(process);
    return process;
  };
  const instance = {
    process: start(),
    get isConnected(): boolean {
      return network.isUp() && isRedisUp;
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
      network.become(state);
      note();
    },
  };
  return instance;
}
