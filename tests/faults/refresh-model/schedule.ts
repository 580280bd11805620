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

/** @param change applied to each process when it starts, so that the checks have something to object to */
export async function runSchedule(
  scheduler: Scheduler,
  plan: Plan,
  change: (process: Process) => void = () => {},
): Promise<History> {
  const { clocksAheadMs, fates, expiresInSeconds, commands } = plan;
  const time = new VirtualTime(scheduler);
  const history = new History(time, expiresInSeconds * 1000);
  const redis = new RedisModel(() => time.now + clocksAheadMs[2]);
  const upstream = upstreamModel(time, history, fates, expiresInSeconds);
  try {
    await new Schedule({ time, history, redis, upstream, change }, clocksAheadMs).run(commands);
  } catch (cause) {
    if (!(cause instanceof Stuck)) throw cause;
    history.stuck = cause.message;
  }
  return history;
}

interface World {
  readonly time: VirtualTime;
  readonly history: History;
  readonly redis: RedisModel;
  readonly upstream: ReturnType<typeof upstreamModel>;
  readonly change: (process: Process) => void;
}

class Schedule {
  readonly #world: World;
  readonly #instances: readonly [Instance, Instance];
  /** What clients have received, the newest last. */
  readonly #received: Token[];
  /** What is in flight, by the process that does it. */
  readonly #inFlight = new Map<Promise<void>, Process>();

  constructor(world: World, [a, b]: Plan['clocksAheadMs']) {
    this.#world = world;
    this.#instances = [startInstance(world, 'A', a), startInstance(world, 'B', b)];
    this.#received = [world.upstream.signIn()];
  }

  async run(commands: readonly Command[]): Promise<void> {
    const { time, history } = this.#world;
    for (const command of commands) {
      await time.pass(command.afterMs);
      this.#do(command);
    }
    this.#setNetworks('up');
    await time.run(() => this.#isDone());
    const doneAt = time.now;
    await time.run(() => time.isIdle || time.now > doneAt + QUIET_MS);
    for (const { process } of this.#instances) history.timersLeft += time.timersOf(process.clock);
  }

  #isDone(): boolean {
    for (const { clock } of this.#inFlight.values()) if (clock.isAlive) return false;
    return this.#instances.every(({ isConnected }) => isConnected);
  }

  #do(command: Command): void {
    const instance = this.#instances[command.instance];
    const { process } = instance;
    const token = this.#received.at(-1 - (command.token % this.#received.length));
    if (!token) throw new Error('no token was received');
    const commands: Record<Command['kind'], () => void> = {
      request: () => this.#start(process, this.#request(process, token, command)),
      presentation: () => {
        this.#world.history.present({ token, instance: process.name });
        process.shared.presented.note(token.text);
      },
      'sign-out': () => this.#start(process, this.#signOut(process, token)),
      'sign-in': () => this.#start(process, this.#signIn(process, token)),
      crash: () => instance.crash(),
      'Redis restarts': () => {
        this.#world.redis.empty();
        this.#setNetworks('cut');
      },
      'Redis is cut off': () => instance.setNetwork('cut'),
      'Redis stalls': () => instance.setNetwork('stalled'),
      'Redis is back': () => this.#setNetworks('up'),
    };
    commands[command.kind]();
  }

  #setNetworks(state: 'up' | 'cut'): void {
    for (const each of this.#instances) each.setNetwork(state);
  }

  #start(process: Process, work: Promise<void>): void {
    this.#inFlight.set(work, process);
    void work.finally(() => this.#inFlight.delete(work));
  }

  async #request(process: Process, token: Token, { asksAfterMs, callMs }: Command): Promise<void> {
    const { name, shared, clock } = process;
    const { history, upstream } = this.#world;
    const request = history.request({ token, instance: name });
    shared.presented.note(token.text);
    const arrivedAt = clock.now();
    if (asksAfterMs > 0) await clock.sleep(asksAfterMs);
    request.asked = history.moment(`the request with ${token.text} at ${name} asks for a refresh`);
    const outcome = await shared.refresh(token.text, request.record, arrivedAt);
    const reuse = request.record.refreshTokenReused ? ', counted as a reuse' : '';
    request.ended = history.moment(`the request with ${token.text} at ${name}: ${outcome.kind}${reuse}`);
    request.outcome = outcome.kind;
    if (outcome.kind !== 'renewed') return;
    request.pair = upstream.tokenWith(outcome.pair.refreshToken);
    if (callMs > 0) await clock.sleep(callMs);
    request.leaves = history.moment(`the response with ${request.pair.text} leaves ${name}`);
    const newest = await shared.newest(outcome.pair);
    if (newest) request.given = this.#receive(upstream.tokenWith(newest.refreshToken));
  }

  async #signOut(process: Process, token: Token): Promise<void> {
    const { newest, hadEnded } = await this.#end(process, token);
    const pairs = [...(hadEnded ? [] : [this.#world.upstream.pairOf(token)]), ...(newest ? [newest] : [])];
    await Promise.allSettled(pairs.map((pair) => process.upstream.signOut(pair, newRequestRecord())));
  }

  async #signIn(process: Process, token: Token): Promise<void> {
    await this.#end(process, token);
    this.#receive(this.#world.upstream.signIn());
  }

  async #end({ name, shared }: Process, token: Token) {
    const signOut = this.#world.history.signOut({ token, instance: name });
    const end = await shared.end(token.text);
    signOut.ended = this.#world.history.moment(`the sign-out of ${token.text} at ${name} is over`);
    return end;
  }

  #receive(token: Token): Token {
    if (!this.#received.includes(token)) this.#received.push(token);
    return token;
  }
}

/** What runs until it crashes. */
export interface Process {
  /** Such as `B2` after a crash of `B1`. */
  readonly name: string;
  readonly clock: ProcessClock;
  readonly connection: RedisConnection;
  readonly upstream: UpstreamApi;
  readonly shared: RefreshCoordinator;
}
type Instance = ReturnType<typeof startInstance>;

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
