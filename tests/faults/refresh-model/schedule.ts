/** Runs one schedule: clients, two instances, Redis and an upstream, in the order that the scheduler chooses. */

import { History, type SignIn, type Token } from './history.ts';
import { Instance, type Process, type World } from './instance.ts';
import type { Command, Plan } from './plans.ts';
import { RedisModel } from './redis-model.ts';
import { UpstreamModel } from './upstream-model.ts';
import { NEXT_COMMAND, type Scheduler, Stuck, VirtualTime } from './virtual-time.ts';

/** Long enough for whatever goes on when every request has ended. */
const QUIET_MS = 30_000;

type Of<Kind extends Command['kind']> = Extract<Command, { kind: Kind }>;

export function runSchedule(scheduler: Scheduler, plan: Plan): Promise<History> {
  const { commands, fates, expiresInSeconds, clocksAheadMs } = plan;
  const [a, b, ofRedis] = clocksAheadMs;
  const time = new VirtualTime(scheduler);
  const history = new History(expiresInSeconds * 1000, time.now);
  const redis = new RedisModel(() => time.now() + ofRedis);
  const upstream = new UpstreamModel(time, history, fates, expiresInSeconds);
  return new Schedule({ time, history, redis, upstream }, a, b).run(commands);
}

class Schedule {
  readonly #world: World;
  readonly #instances: readonly [Instance, Instance];
  /** What clients have received, the newest last. */
  readonly #received: Token[];
  /** What is in flight, by the process that does it. */
  readonly #inFlight = new Map<Promise<void>, Process>();

  constructor(world: World, aAheadMs: number, bAheadMs: number) {
    this.#world = world;
    this.#instances = [new Instance(world, 'A', aAheadMs), new Instance(world, 'B', bAheadMs)];
    this.#received = [world.upstream.signIn()];
  }

  async run(commands: readonly Command[]): Promise<History> {
    const { time, history } = this.#world;
    try {
      for (const command of commands) {
        await this.#letPass(command.afterMs);
        this.#do(command);
      }
      for (const instance of this.#instances) instance.setNetwork('up');
      await time.run(() => this.#isDone());
      const doneAt = time.now();
      await time.run(() => time.isIdle || time.now() > doneAt + QUIET_MS);
    } catch (cause) {
      if (!(cause instanceof Stuck)) throw cause;
      history.stuck = cause.message;
    }
    for (const { process } of this.#instances) history.timersLeft += process.clock.timers;
    return history;
  }

  /** At least so long. The scheduler decides how much happens meanwhile. */
  async #letPass(ms: number): Promise<void> {
    let isOver = false;
    this.#world.time.timer(NEXT_COMMAND, ms, () => {
      isOver = true;
    });
    await this.#world.time.run(() => isOver);
  }

  #isDone(): boolean {
    for (const { clock } of this.#inFlight.values()) if (clock.isAlive) return false;
    return this.#instances.every(({ isConnected }) => isConnected);
  }

  #do(command: Command): void {
    const instance = this.#instances[command.instance];
    const { process } = instance;
    const token = this.#pick(command.token);
    switch (command.kind) {
      case 'request':
        this.#start(process, this.#request(process, token, command));
        break;
      case 'presentation':
        this.#present(process, token);
        break;
      case 'sign-out':
        this.#start(process, this.#signOut(process, token));
        break;
      case 'sign-in':
        this.#start(process, this.#signIn(process, token, command));
        break;
      case 'crash':
        instance.crash();
        break;
      case 'Redis goes away':
        this.#takeRedisAway(command, instance);
        break;
      case 'Redis comes back':
        for (const each of this.#instances) each.setNetwork('up');
    }
  }

  #present({ name, shared }: Process, token: Token): void {
    this.#world.history.present({ token, instance: name });
    shared.presented.note(token.text);
  }

  #takeRedisAway({ how, who }: Of<'Redis goes away'>, instance: Instance): void {
    if (how === 'restart') this.#world.redis.empty();
    const isForBoth = how === 'restart' || who === 'both';
    for (const each of isForBoth ? this.#instances : [instance]) {
      each.setNetwork(how === 'stalled' ? 'stalled' : 'cut');
    }
  }

  /** Counted from the newest that a client has received. If its text was issued again, that token is meant. */
  #pick(back: number): Token {
    const token = this.#received.at(-1 - (back % this.#received.length));
    if (!token) throw new Error('no token was received');
    return this.#world.upstream.tokenWith(token.text);
  }

  #receive(token: Token): void {
    if (!this.#received.includes(token)) this.#received.push(token);
  }

  #start(process: Process, work: Promise<void>): void {
    this.#inFlight.set(work, process);
    void work.finally(() => this.#inFlight.delete(work));
  }

  async #request(process: Process, token: Token, command: Of<'request'>): Promise<void> {
    const { name, shared, clock } = process;
    const { history, upstream } = this.#world;
    const request = history.request({ token, instance: name });
    shared.presented.note(token.text);
    const arrivedAt = clock.now();
    if (command.asksAfterMs > 0) await clock.sleep(command.asksAfterMs);
    request.asked = history.moment(`the request with ${token.text} at ${name} asks for a refresh`);
    const outcome = await shared.refresh(token.text, request.record, arrivedAt);
    const reuse = request.record.refreshTokenReused ? ', counted as a reuse' : '';
    request.ended = history.moment(`the request with ${token.text} at ${name}: ${outcome.kind}${reuse}`);
    request.outcome = outcome.kind;
    if (outcome.kind !== 'renewed') return;
    request.pair = upstream.tokenWith(outcome.pair.refreshToken);
    if (command.callMs > 0) await clock.sleep(command.callMs);
    request.leaves = history.moment(`the response with ${request.pair.text} leaves ${name}`);
    const newest = await shared.newest(outcome.pair);
    if (!newest) return;
    request.given = upstream.tokenWith(newest.refreshToken);
    this.#receive(request.given);
  }

  async #end({ name, shared }: Process, token: Token) {
    const { history } = this.#world;
    const signOut = history.signOut({ token, instance: name });
    const end = await shared.end(token.text);
    signOut.ended = history.moment(`the sign-out of ${token.text} at ${name} is over`);
    return end;
  }

  async #signOut(process: Process, token: Token): Promise<void> {
    const { newest, hadEnded } = await this.#end(process, token);
    const pairs = [...(hadEnded ? [] : [this.#world.upstream.pairOf(token)]), ...(newest ? [newest] : [])];
    await Promise.allSettled(pairs.map((pair) => process.endpoints.signOut(pair)));
  }

  async #signIn(process: Process, token: Token, { how }: Of<'sign-in'>): Promise<void> {
    const { history, upstream } = this.#world;
    if (how !== 'again') await this.#end(process, token);
    // A provider that issues the same token again does not rotate it.
    const isSpent = history.sends.some((send) => send.token === token);
    const issued = upstream.signIn(how === 'replaces' || isSpent ? undefined : token);
    const signIn: SignIn = { token: issued, instance: process.name, isAgain: issued.text === token.text };
    history.signIns.push(signIn);
    await process.shared.forgetEnd(issued.text);
    signIn.ended = history.moment(`the sign-in with ${issued.text} at ${process.name} is over`);
    this.#receive(issued);
  }
}
