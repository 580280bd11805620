/** Runs one schedule: clients, two instances, Redis and an upstream, in the order that the scheduler chooses. */

import { RefreshCoordinator } from '../../../src/gateway/refresh/coordinator.ts';
import { RedisConnection } from '../../../src/gateway/refresh/redis-connection.ts';
import { RedisReplayStore } from '../../../src/gateway/refresh/redis-store.ts';
import { newLedger } from '../../support/facts.ts';
import { Client } from './browser.ts';
import { FASTEST_SIGN_IN_MS, History, settings } from './history.ts';
import { type Command, type Plan, STANDSTILL_MS } from './plans.ts';
import { RedisModel, redisNetwork } from './redis-model.ts';
import { upstreamModel } from './upstream-model.ts';
import { ProcessClock, type Scheduler, Stuck, VirtualTime } from './virtual-time.ts';

/** Long enough for whatever goes on when every request has ended. */
const QUIET_MS = 30_000;

export type World = ReturnType<typeof newWorld>;
/** What runs until it crashes. */
export type Process = ReturnType<typeof startProcess>;
export type Change = (process: Process) => void;

/** @param change of each process when it starts, so that the checks have something to object to */
export async function runSchedule(
  scheduler: Scheduler,
  plan: Plan,
  change: Change = () => {},
): Promise<History> {
  const world = newWorld(scheduler, plan);
  try {
    await carryOut(world, plan, change);
  } catch (cause) {
    if (!(cause instanceof Stuck)) throw cause;
    world.history.unfinished.push(cause.message);
  }
  return world.history;
}

function newWorld(scheduler: Scheduler, { clocksAheadMs, fates, habits }: Plan) {
  const time = new VirtualTime(scheduler);
  const history = new History(time, habits.expiresInSeconds * 1000);
  const redis = new RedisModel(() => time.now + clocksAheadMs[2]);
  const upstream = upstreamModel(time, history, fates, habits);
  /** What clients have received, the newest last. */
  const received = [upstream.begin()];
  return { time, history, redis, upstream, received };
}

async function carryOut(world: World, { clocksAheadMs, commands }: Plan, change: Change): Promise<void> {
  const { time, history, redis, received } = world;
  const start = (letter: string, aheadMs: number) => startInstance(world, letter, aheadMs, change);
  const instances = [start('A', clocksAheadMs[0]), start('B', clocksAheadMs[1])] as const;
  const browser = new Client(world, received[0]);
  const setNetworks = (state: 'up' | 'cut') => {
    for (const each of instances) each.setNetwork(state);
  };
  for (const command of commands) {
    await time.pass(command.afterMs);
    const { kind, isLost } = command;
    const instance = instances[command.instance];
    const { process } = instance;
    const copied = received.at(-1 - (command.token % received.length));
    if (!copied) throw new Error('no token was received');
    // A browser without cookies has nothing to refresh or to sign out.
    const isBrowser = command.token === 0 && browser.token !== undefined;
    const client = isBrowser ? browser : new Client(world, copied);
    const token = client.token ?? copied;
    const begin = async (work: Promise<void>) => {
      process.inFlight++;
      await work;
      process.inFlight--;
    };
    const signIn = () => void begin(browser.signIn(process, isLost));
    const kinds: Record<Command['kind'], () => unknown> = {
      request: () => begin(client.request(process, token, command)),
      presentation: () =>
        process.clock.reach(() => {
          history.present({ token, instance: process.name });
          process.shared.presented.note(token.text);
        }),
      'sign-out': () => begin(client.signOut(process, token, isLost)),
      'sign-in': () => {
        const fromMs = browser.token ? 0 : browser.lostAt + FASTEST_SIGN_IN_MS - time.now;
        if (fromMs > 0) time.timer(fromMs, signIn);
        else signIn();
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
  }
  setNetworks('up');
  const isDone = () => instances.every(({ process, isConnected }) => isConnected && !process.inFlight);
  await time.run(isDone);
  const doneAt = time.now;
  await time.run(() => time.isIdle || time.now > doneAt + QUIET_MS);
  if (!time.isIdle) history.unfinished.push('a timer is left');
}

/** One instance of the gateway, whose network to Redis can fail, and whose process can die. */
function startInstance(world: World, letter: string, aheadMs: number, change: Change) {
  const { time, history, redis } = world;
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
    isRedisUp = true;
    const clock = new ProcessClock(time, aheadMs);
    const observer = { onDown: () => note(false), onUp: () => note(true) };
    const connection = new RedisConnection('redis://model', observer, clock, () => network.open(clock));
    const process = startProcess(world, `${letter}${++starts}`, clock, connection);
    change(process);
    return process;
  };
  const instance = {
    process: start(),
    get isConnected(): boolean {
      return network.isUp() && isRedisUp;
    },
    /** Another process takes the place of this one, with nothing in its memory. */
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

/**
 * The gateway, as far as it coordinates refreshes: the real code on a virtual clock and network.
 *
 * @param name such as `B2` after a crash of `B1`
 */
function startProcess(world: World, name: string, clock: ProcessClock, connection: RedisConnection) {
  const store = new RedisReplayStore(connection, newLedger(), clock);
  const upstream = world.upstream.endpoints(clock, name);
  const shared = new RefreshCoordinator(settings, store, upstream, clock);
  return { name, clock, upstream, store, shared, inFlight: 0 };
}
