/** The network between the instances and the model of Redis: connections, delays, and ways to be away. */

import type { RedisLink } from '../../../src/gateway/refresh/redis-connection.ts';
import type { RedisModel, RedisReply } from './redis-model.ts';
import type { ProcessClock, VirtualTime } from './virtual-time.ts';

/** A command there and back takes less than the store waits for it. */
const ONE_WAY_MS = 15;

/** `cut`: connections end and cannot be made. `stalled`: nothing arrives until it is over. */
export type NetworkState = 'up' | 'cut' | 'stalled';

interface Command {
  readonly name: string;
  readonly parameters: readonly string[];
  readonly resolve: (reply: RedisReply) => void;
  readonly reject: (cause: Error) => void;
}

/** The way of one instance to Redis. */
export class RedisNetwork {
  readonly #time: VirtualTime;
  readonly #redis: RedisModel;
  readonly #name: string;
  readonly #links = new Set<ModelLink>();
  #waiting: (() => void)[] = [];
  #state: NetworkState = 'up';

  constructor(time: VirtualTime, redis: RedisModel, name: string) {
    this.#time = time;
    this.#redis = redis;
    this.#name = name;
  }

  open(clock: ProcessClock): RedisLink {
    const link = new ModelLink(this, clock);
    this.#links.add(link);
    return link;
  }

  get state(): NetworkState {
    return this.#state;
  }

  become(state: NetworkState): void {
    this.#state = state;
    if (state === 'cut') {
      this.#waiting = [];
      for (const link of this.#links) link.end(new Error('the connection was cut'));
      this.#links.clear();
    }
    if (state !== 'up') return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const pass of waiting) pass();
  }

  /** The process at this end has died: what it has sent arrives, and nobody hears of it. */
  crash(): void {
    for (const link of this.#links) link.crash();
    this.#links.clear();
  }

  forget(link: ModelLink): void {
    this.#links.delete(link);
  }

  execute({ name, parameters }: Command): RedisReply {
    return this.#redis.command(name, parameters);
  }

  /** A message on its way, in either direction. */
  pass(label: string, arrive: () => void): void {
    if (this.#state === 'stalled') {
      this.#waiting.push(() => this.pass(label, arrive));
      return;
    }
    this.#time.event(`${this.#name} ${label}`, ONE_WAY_MS, () => {
      if (this.#state === 'stalled') this.#waiting.push(() => this.pass(label, arrive));
      else arrive();
    });
  }
}

/** A connection: commands and replies keep their order, as in TCP. */
class ModelLink implements RedisLink {
  readonly #network: RedisNetwork;
  readonly #clock: ProcessClock;
  readonly #sent: Command[] = [];
  readonly #replied: (() => void)[] = [];
  readonly #unanswered = new Set<Command>();
  #isOpen = true;
  onclose: ((cause: Error) => void) | null = null;

  constructor(network: RedisNetwork, clock: ProcessClock) {
    this.#network = network;
    this.#clock = clock;
  }

  connect(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#network.pass('connects to Redis', () => {
        if (this.#network.state === 'cut') reject(new Error('the connection was refused'));
        else if (this.#clock.isAlive) resolve();
      });
    });
  }

  send(name: string, parameters: string[]): Promise<RedisReply> {
    return new Promise((resolve, reject) => {
      if (!this.#clock.isAlive) return;
      if (!this.#isOpen) {
        reject(new Error('the connection is closed'));
        return;
      }
      const command = { name, parameters, resolve, reject };
      this.#sent.push(command);
      this.#unanswered.add(command);
      this.#network.pass('→ Redis', () => this.#arrive());
    });
  }

  /** What has been sent still arrives. */
  close(): void {
    this.#network.forget(this);
    this.#isOpen = false;
    for (const { reject } of this.#unanswered) reject(new Error('the connection was closed'));
    this.#unanswered.clear();
  }

  crash(): void {
    this.#isOpen = false;
    this.#unanswered.clear();
  }

  end(cause: Error): void {
    this.#sent.length = 0;
    this.#replied.length = 0;
    const wasOpen = this.#isOpen;
    this.close();
    if (wasOpen && this.#clock.isAlive) this.onclose?.(cause);
  }

  #arrive(): void {
    const command = this.#sent.shift();
    if (!command) return;
    let settle: () => void;
    try {
      const reply = this.#network.execute(command);
      settle = () => command.resolve(reply);
    } catch (cause) {
      const error = cause instanceof Error ? cause : new Error('an error of Redis');
      settle = () => command.reject(error);
    }
    this.#replied.push(() => {
      if (!this.#unanswered.delete(command) || !this.#clock.isAlive) return;
      settle();
    });
    this.#network.pass('← Redis', () => this.#replied.shift()?.());
  }
}
