/** One instance of the gateway, as far as it coordinates refreshes: the real code on a virtual clock and network. */

import { RefreshCoordinator } from '../../../src/gateway/refresh/coordinator.ts';
import { RedisConnection } from '../../../src/gateway/refresh/redis-connection.ts';
import { RedisReplayStore } from '../../../src/gateway/refresh/redis-store.ts';
import { newLedger } from '../../support/refresh-coordinator.ts';
import { settings } from './facts.ts';
import type { History, Outage } from './history.ts';
import { type NetworkState, type RedisModel, RedisNetwork } from './redis-model.ts';
import type { UpstreamModel } from './upstream-model.ts';
import { ProcessClock, type VirtualTime } from './virtual-time.ts';

export interface World {
  readonly time: VirtualTime;
  readonly history: History;
  readonly redis: RedisModel;
  readonly upstream: UpstreamModel;
}

/** What runs until it crashes. */
export type Process = ReturnType<Instance['start']>;

export class Instance {
  readonly #world: World;
  readonly #name: string;
  readonly #aheadMs: number;
  readonly #network: RedisNetwork;
  #starts = 0;
  #outage: Outage | undefined;
  process: Process;

  /** @param aheadMs how far its clock is ahead of the others' */
  constructor(world: World, name: string, aheadMs: number) {
    this.#world = world;
    this.#name = name;
    this.#aheadMs = aheadMs;
    this.#network = new RedisNetwork(world.time, world.redis, name);
    this.process = this.start();
  }

  get isConnected(): boolean {
    return this.#network.isUp && this.process.connection.isUp;
  }

  /** The process dies, and another one takes its place with nothing in its memory. */
  crash(): void {
    const { history } = this.#world;
    const { name, clock } = this.process;
    history.crashes.push({ instance: name, moment: history.moment(`${name} crashes`) });
    clock.crash();
    this.#network.crash();
    for (const request of history.requests) {
      if (request.instance === name && !request.ended) request.isLost = true;
    }
    this.process = this.start();
  }

  setNetwork(state: NetworkState): void {
    if (state !== 'up') this.#outageBegins();
    this.#network.become(state);
    this.#outageMayEnd();
  }

  start() {
    const { time, upstream } = this.#world;
    const name = `${this.#name}${++this.#starts}`;
    const clock = new ProcessClock(time, name, this.#aheadMs);
    const whileAlive = (work: () => void) => () => {
      if (clock.isAlive) work();
    };
    const observer = {
      onDown: whileAlive(() => this.#outageBegins()),
      onUp: whileAlive(() => queueMicrotask(() => this.#outageMayEnd())),
    };
    const open = () => this.#network.open(clock);
    const connection = new RedisConnection('redis://model', observer, clock, open);
    const endpoints = upstream.endpoints(settings, clock, name);
    const store = new RedisReplayStore(connection, newLedger(), clock.now);
    const shared = new RefreshCoordinator(settings, store, endpoints, clock);
    return { name, clock, connection, endpoints, shared };
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
