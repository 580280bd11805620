/** Runs one schedule: clients, two instances, Redis and an upstream, in the order that the scheduler chooses. */

import { RefreshCoordinator } from '../../../src/gateway/refresh/coordinator.ts';
import { RedisConnection } from '../../../src/gateway/refresh/redis-connection.ts';
import { RedisReplayStore } from '../../../src/gateway/refresh/redis-store.ts';
import { newLedger, newRequestRecord } from '../../support/refresh-coordinator.ts';
import { settings } from './facts.ts';
import { History, type Outage, type Token } from './history.ts';
import type { Command, Plan } from './plans.ts';
import { RedisModel, redisNetwork } from './redis-model.ts';
import { upstreamModel } from './upstream-model.ts';
import { ProcessClock, type Scheduler, Stuck, VirtualTime } from './virtual-time.ts';

/** Long enough for whatever goes on when every request has ended. */
const QUIET_MS = 30_000;

export async function runSchedule(scheduler: Scheduler, plan: Plan): Promise<History> {
  const { clocksAheadMs, fates, expiresInSeconds, commands } = plan;
  const time = new VirtualTime(scheduler);
  const history = new History(time, expiresInSeconds * 1000);
  const redis = new RedisModel(() => time.now + clocksAheadMs[2]);
  const upstream = upstreamModel(time, history, fates, expiresInSeconds);
  try {
    await new Schedule({ time, history, redis, upstream }, clocksAheadMs).run(commands);
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
    this.#instances = [new Instance(world, 'A', a), new Instance(world, 'B', b)];
    this.#received = [world.upstream.signIn()];
  }

  async run(commands: readonly Command[]): Promise<void> {
    const { time, history } = this.#world;
    for (const command of commands) {
      let isDue = false;
      const begin = () => {
        isDue = true;
      };
      // The scheduler decides how much happens before it.
      time.timer(command.afterMs, begin, 'the commands');
      await time.run(() => isDue);
      this.#do(command);
    }
    for (const instance of this.#instances) instance.setNetwork('up');
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
        for (const each of this.#instances) each.setNetwork('cut');
      },
      'Redis is cut off': () => instance.setNetwork('cut'),
      'Redis stalls': () => instance.setNetwork('stalled'),
      'Redis is back': () => {
        for (const each of this.#instances) each.setNetwork('up');
      },
    };
    commands[command.kind]();
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
type Process = ReturnType<Instance['start']>;

/** One instance of the gateway, as far as it coordinates refreshes: the real code on a virtual clock and network. */
class Instance {
  readonly #world: World;
  readonly #name: string;
  readonly #aheadMs: number;
  readonly #network: ReturnType<typeof redisNetwork>;
  #starts = 0;
  #outage: Outage | undefined;
  process: Process;

  constructor(world: World, name: string, aheadMs: number) {
    this.#world = world;
    this.#name = name;
    this.#aheadMs = aheadMs;
    this.#network = redisNetwork(world.time, world.redis);
    this.process = this.start();
  }

  get isConnected(): boolean {
    return this.#network.isUp() && this.process.connection.isUp;
  }

  start() {
    const { time, upstream: model } = this.#world;
    const name = `${this.#name}${++this.#starts}`;
    const clock = new ProcessClock(time, this.#aheadMs);
    const observer = {
      onDown: () => this.#outageBegins(),
      onUp: () => queueMicrotask(() => this.#outageMayEnd()),
    };
    const connection = new RedisConnection('redis://model', observer, clock, () => this.#network.open(clock));
    const store = new RedisReplayStore(connection, newLedger(), clock.now);
    const upstream = model.endpoints(clock, name);
    const shared = new RefreshCoordinator(settings, store, upstream, clock);
    return { name, clock, connection, upstream, shared };
  }

  /** The process dies, and another one takes its place with nothing in its memory. */
  crash(): void {
    const { name, clock } = this.process;
    this.#world.history.crashes.set(name, this.#world.history.moment(`${name} crashes`));
    clock.crash();
    this.#network.crash();
    this.process = this.start();
  }

  setNetwork(state: 'up' | 'cut' | 'stalled'): void {
    if (state !== 'up') this.#outageBegins();
    this.#network.become(state);
    this.#outageMayEnd();
  }

  #outageBegins(): void {
    if (this.#outage) return;
    this.#outage = { began: this.#world.history.moment(`${this.#name} has no Redis`) };
    this.#world.history.outages.push(this.#outage);
  }

  #outageMayEnd(): void {
    if (!this.#outage || !this.isConnected) return;
    this.#outage.ended = this.#world.history.moment(`${this.#name} has Redis again`);
    this.#outage = undefined;
  }
}
