/** Runs one schedule: clients, two instances, Redis and an upstream, in the order that the scheduler chooses. */

import type { Scheduler } from 'fast-check';
import { refreshTokenHash } from '../../../src/gateway/refresh/sealed-pair.ts';
import { RequestTrace } from '../../../src/gateway/trace/request-trace.ts';
import type { Command, Plan } from './commands.ts';
import { History, type Request, type SignIn, type Token } from './history.ts';
import { Instance, type Process, type World } from './instance.ts';
import { RedisModel } from './redis-model.ts';
import { UpstreamModel } from './upstream-model.ts';
import { Stuck, VirtualTime } from './virtual-time.ts';

/** Long enough for whatever goes on when every request has ended. */
const QUIET_MS = 30_000;
const HTTP_REQUEST = new globalThis.Request('http://gateway.test');

export async function runSchedule(scheduler: Scheduler, plan: Plan): Promise<History> {
  return new Schedule(scheduler, plan).run();
}

class Schedule {
  readonly #world: World;
  readonly #instances: readonly [Instance, Instance];
  readonly #commands: readonly Command[];
  /** What clients have received, the newest last. */
  readonly #received: Token[] = [];
  /** What is under way, by the process that does it. */
  readonly #underWay = new Map<Promise<void>, Process>();

  constructor(scheduler: Scheduler, { commands, fates, expiresInSeconds }: Plan) {
    const time = new VirtualTime(scheduler);
    const history = new History(expiresInSeconds * 1000);
    const redis = new RedisModel(time.now);
    const upstream = new UpstreamModel(time, history, fates, expiresInSeconds);
    this.#world = { time, history, redis, upstream };
    this.#instances = [new Instance(this.#world, 'A'), new Instance(this.#world, 'B')];
    this.#commands = commands;
  }

  async run(): Promise<History> {
    const { time, history } = this.#world;
    this.#received.push(this.#world.upstream.signIn());
    try {
      for (const command of this.#commands) {
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

  /** At least so long; how much happens in the meantime is up to the scheduler. */
  async #letPass(ms: number): Promise<void> {
    let isOver = false;
    this.#world.time.timer('the next command', ms, () => {
      isOver = true;
    });
    await this.#world.time.run(() => isOver);
  }

  #isDone(): boolean {
    for (const { clock } of this.#underWay.values()) if (clock.isAlive) return false;
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
        this.#start(process, this.#signIn(process, token, command.how));
        break;
      case 'crash':
        instance.crash();
        break;
      case 'forged claim':
        this.#forge(token);
        break;
      case 'Redis goes away':
        this.#takeRedisAway(command, instance);
        break;
      case 'Redis comes back':
        for (const each of this.#instances) each.setNetwork('up');
        break;
    }
  }

  #takeRedisAway({ how, who }: Extract<Command, { kind: 'Redis goes away' }>, instance: Instance): void {
    if (how === 'restart') this.#world.redis.empty();
    const isForBoth = how === 'restart' || who === 'both';
    for (const each of isForBoth ? this.#instances : [instance]) {
      each.setNetwork(how === 'stalled' ? 'stalled' : 'cut');
    }
  }

  /** Counted from the newest that a client has received; when its text was issued again, that is meant. */
  #pick(back: number): Token {
    const token = this.#received.at(-1 - (back % this.#received.length));
    if (!token) throw new Error('no token was received');
    return this.#world.upstream.tokenWith(token.text);
  }

  #receive(token: Token): void {
    if (!this.#received.includes(token)) this.#received.push(token);
  }

  #start(process: Process, work: Promise<void>): void {
    this.#underWay.set(work, process);
    void work.finally(() => this.#underWay.delete(work));
  }

  #present({ name, shared }: Process, token: Token): void {
    const { time, history } = this.#world;
    history.presentations.push({ token, instance: name, moment: time.moment() });
    shared.present(token.text, time.now());
  }

  async #request(
    process: Process,
    token: Token,
    { asksAfterMs, callMs }: Extract<Command, { kind: 'request' }>,
  ): Promise<void> {
    const { time, history, upstream } = this.#world;
    const request: Request = {
      token,
      instance: process.name,
      arrived: time.moment(),
      asked: undefined,
      ended: undefined,
      outcome: undefined,
      pair: undefined,
      leaves: undefined,
      given: undefined,
      trace: new RequestTrace(HTTP_REQUEST),
      isLost: false,
    };
    history.requests.push(request);
    this.#present(process, token);
    if (asksAfterMs > 0) await process.clock.sleep(asksAfterMs);
    request.asked = time.moment();
    const outcome = await process.shared.refresh(token.text, request.trace, request.arrived.at);
    request.ended = time.moment();
    request.outcome = outcome.kind;
    if (outcome.kind !== 'renewed') return;
    request.pair = upstream.tokenWith(outcome.pair.refreshToken);
    if (callMs > 0) await process.clock.sleep(callMs);
    request.leaves = time.moment();
    const newest = await process.shared.newest(outcome.pair);
    if (!newest) return;
    request.given = upstream.tokenWith(newest.refreshToken);
    this.#receive(request.given);
  }

  async #end({ name, shared }: Process, token: Token) {
    const { time, history } = this.#world;
    const signOut = { token, instance: name, began: time.moment(), ended: time.moment(), isOver: false };
    history.signOuts.push(signOut);
    const newest = await shared.end(token.text);
    signOut.ended = time.moment();
    signOut.isOver = true;
    return newest;
  }

  async #signOut(process: Process, token: Token): Promise<void> {
    const newest = await this.#end(process, token);
    const pairs = [this.#world.upstream.pairOf(token), ...(newest ? [newest] : [])];
    await Promise.allSettled(pairs.map((pair) => process.endpoints.signOut(pair)));
  }

  async #signIn(
    process: Process,
    token: Token,
    how: 'replaces' | 'again' | 'replaces, again',
  ): Promise<void> {
    const { time, history, upstream } = this.#world;
    if (how !== 'again') await this.#end(process, token);
    // A provider that issues the same token again does not rotate it.
    const isSpent = history.sends.some((send) => send.token === token);
    const issued = upstream.signIn(how === 'replaces' || isSpent ? undefined : token);
    const signIn: SignIn = {
      token: issued,
      instance: process.name,
      isAgain: issued.text === token.text,
      ended: undefined,
    };
    history.signIns.push(signIn);
    await process.shared.begin(issued.text);
    signIn.ended = time.moment();
    this.#receive(issued);
  }

  /** Somebody with access to Redis writes a claim that never ends. */
  #forge(token: Token): void {
    this.#world.history.forged.push({ token, moment: this.#world.time.moment() });
    this.#world.redis.command('SET', [
      `music-gateway:refresh:${refreshTokenHash(token.text)}`,
      'claimed:forged',
    ]);
  }
}
