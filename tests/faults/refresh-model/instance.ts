/** One instance of the gateway, as far as it coordinates refreshes: the real code on a virtual clock and network. */

import { RefreshCoordinator } from '../../../src/gateway/refresh/coordinator.ts';
import type { RedisLink } from '../../../src/gateway/refresh/redis-connection.ts';
import { RedisConnection } from '../../../src/gateway/refresh/redis-connection.ts';
import { RedisReplayStore } from '../../../src/gateway/refresh/redis-store.ts';
import type { History, Outage } from './history.ts';
import type { RedisModel } from './redis-model.ts';
import { type NetworkState, RedisNetwork } from './redis-network.ts';
import { settings } from './settings.ts';
import { ModelEndpoints, type UpstreamModel } from './upstream-model.ts';
import { ProcessClock, type VirtualTime } from './virtual-time.ts';

export interface World {
  readonly time: VirtualTime;
  readonly history: History;
  readonly redis: RedisModel;
  readonly upstream: UpstreamModel;
}

/** What runs until it crashes. */
export interface Process {
  /** Another one after each crash. */
  readonly name: string;
  readonly clock: ProcessClock;
  readonly shared: RefreshCoordinator;
  readonly endpoints: ModelEndpoints;
  readonly connection: RedisConnection;
}

export class Instance {
  readonly #world: World;
  readonly #name: string;
  readonly #network: RedisNetwork;
  #starts = 0;
  #outage: Outage | undefined;
  process: Process;

  constructor(world: World, name: string) {
    this.#world = world;
    this.#name = name;
    this.#network = new RedisNetwork(world.time, world.redis, name);
    this.process = this.#start();
  }

  get isConnected(): boolean {
    return this.#network.state === 'up' && this.process.connection.isUp;
  }

  /** The process dies, and another one takes its place with nothing in its memory. */
  crash(): void {
    const { name, clock } = this.process;
    this.#world.history.crashes.push({ instance: name, moment: this.#world.time.moment() });
    clock.crash();
    this.#network.crash();
    for (const request of this.#world.history.requests) {
      if (request.instance === name && !request.ended) request.isLost = true;
    }
    this.process = this.#start();
  }

  setNetwork(state: NetworkState): void {
    if (state !== 'up') this.#outageBegins();
    this.#network.become(state);
    this.#outageMayEnd();
  }

  #start(): Process {
    const name = `${this.#name}${++this.#starts}`;
    const clock = new ProcessClock(this.#world.time, name);
    const observer = {
      onDown: () => {
        if (clock.isAlive) this.#outageBegins();
      },
      onUp: () => {
        if (clock.isAlive) queueMicrotask(() => this.#outageMayEnd());
      },
    };
    const open = (): RedisLink => this.#network.open(clock);
    const connection = new RedisConnection('redis://model', observer, clock, open);
    const store = new RedisReplayStore(connection, clock.now);
    const endpoints = new ModelEndpoints(settings, this.#world, clock, name);
    return {
      name,
      clock,
      connection,
      endpoints,
      shared: new RefreshCoordinator(settings, store, endpoints, clock),
    };
  }

  #outageBegins(): void {
    if (this.#outage) return;
    this.#outage = { instance: this.#name, began: this.#world.time.moment(), ended: undefined };
    this.#world.history.outages.push(this.#outage);
  }

  #outageMayEnd(): void {
    if (!this.#outage || !this.isConnected) return;
    this.#outage.ended = this.#world.time.moment();
    this.#outage = undefined;
  }
}
