/** What every load needs: an upstream, and the gateway as a process with the memory of its container. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { eventually } from '../support/eventually.ts';
import { freePorts } from '../support/free-ports.ts';
import { startGatewayProcess } from '../support/gateway-process.ts';
import { parseSamples } from '../support/metrics.ts';
import { request } from '../support/world.ts';
import { openMemoryCgroup } from './memory-cgroup.ts';
import { cookieOf } from './raw-client.ts';
import type { Problems } from './report.ts';

export type Rig = Awaited<ReturnType<typeof startRig>>;

const tried = await openMemoryCgroup(1024);
await tried?.[Symbol.asyncDispose]();
export const MEMORY_CGROUP = { name: 'the right to make a memory cgroup', isMet: tried !== undefined };

const WARM_UP_CHECKS = 10;
/** Sockets are only counted where there is a limit. */
const NO_LIMIT_MB = 1024 * 1024;
const UNMEASURED = { now: () => Number.NaN, peak: () => Number.NaN };
const State = Type.Object({
  held: Type.Number(),
  refreshes: Type.Number(),
  signedOut: Type.Array(Type.String()),
});

/** @param memoryMb the memory of the gateway's container; without a limit by default */
export async function startRig(trackBytes: number, memoryMb?: number, settings: Record<string, string> = {}) {
  await using stack = new AsyncDisposableStack();
  const { line: url } = stack.use(await startProgram('upstream.ts', String(trackBytes)));
  const addresses = { UPSTREAM_URL: url, IDP_URL: url, ...settings };
  const gateway = stack.use(await startLimitedGateway(addresses, memoryMb));
  await checkSession(gateway.url, WARM_UP_CHECKS);
  /** How many orders have had to wait, how many refreshes there were, and the refresh tokens that were signed out. */
  const state = async () => Value.Parse(State, await (await fetch(`${url}/state`)).json());
  const running = stack.move();
  return {
    gateway,
    state,
    holds: (count: number) =>
      eventually(async () => (await state()).held >= count, `${count} waiting orders`, 120_000),
    /** Responds to all orders that wait, now and later. */
    release: () => fetch(`${url}/release`),
    /** Lets all event streams that are open send the rest, and end. */
    endEvents: () => fetch(`${url}/end-events`),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** One of the programs in this folder, when it has printed its first line. Its stdin ends with this process. */
export async function startProgram(file: string, ...words: string[]) {
  const program = new URL(file, import.meta.url).pathname;
  const stdio = { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' } as const;
  const child = Bun.spawn([process.execPath, program, ...words], stdio);
  const { value } = await child.stdout.getReader().read();
  if (!value) throw new Error(`${file} has not started`);
  return {
    line: Buffer.from(value).toString().trim(),
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}

/** @param memoryMb its container's memory: it is killed when it uses more, as cgroup v2 does */
export async function startLimitedGateway(settings: Record<string, string>, memoryMb?: number) {
  await using stack = new AsyncDisposableStack();
  const cgroup = await openMemoryCgroup(memoryMb ?? NO_LIMIT_MB);
  if (memoryMb !== undefined && !cgroup) throw new Error('no memory cgroup can be made');
  stack.use(cgroup);
  const metricsPort = await freePorts(1);
  const environment = { METRICS_PORT: String(metricsPort), ...settings };
  const gateway = stack.use(await startGatewayProcess(environment, undefined, cgroup?.prefix));
  const memory = cgroup ? stack.use(cgroup.meter(gateway.pid)) : UNMEASURED;
  const running = stack.move();
  return {
    ...gateway,
    memory,
    /** Resolves when the gateway ends, which no load may bring about. */
    killed: gateway.exited.then(() => `killed with ${memory.peak()} MB in use`),
    /** What its ledger has reserved, in MiB. */
    async reservedMb(): Promise<number> {
      const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
      return (parseSamples(text).get('places_in_use{pool="memory"}') ?? Number.NaN) / 1024 / 1024;
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** @throws Error when a response is wrong */
export async function checkSession(url: string, times = 1): Promise<void> {
  const options = { ...cookieOf('ada'), tls: { rejectUnauthorized: false } };
  for (let time = 0; time < times; time++) {
    const response = await request(`${url}/api/auth/session`, options);
    const text = `${response.status} ${await response.text()}`;
    if (text !== '200 {"token":"Bearer ada"}') throw new Error(`a session check: ${text.slice(0, 80)}`);
  }
}

/**
 * Somebody whom a load must not touch checks a session again and again.
 *
 * @param others what others do beside every tenth check
 */
export function keepChecking(
  url: string,
  problems: Problems,
  pauseMs: number,
  others: (round: number) => Promise<unknown> = async () => {},
) {
  const tookMs: number[] = [];
  let isOver = false;
  const check = async () => {
    for (let round = 0; !isOver; round++) {
      const since = performance.now();
      await problems.during('a session check', checkSession(url));
      tookMs.push(performance.now() - since);
      if (round % 10 === 0) await problems.during('others', others(round));
      await Bun.sleep(pauseMs);
    }
  };
  const checked = check();
  return {
    tookMs,
    [Symbol.asyncDispose]() {
      isOver = true;
      return checked;
    },
  };
}
