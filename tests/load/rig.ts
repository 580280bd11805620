/** What every load needs: an upstream, and the gateway as a process with the memory of its container. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { eventually } from '../support/eventually.ts';
import { startGatewayProcess } from '../support/gateway-process.ts';
import { request } from '../support/world.ts';
import { openMemoryCgroup } from './memory-cgroup.ts';
import { cookieOf } from './raw-client.ts';

interface RigOptions {
  readonly trackBytes?: number;
  /** The memory of the gateway's container; without a limit by default. */
  readonly memoryMb?: number;
  readonly settings?: Readonly<Record<string, string>>;
}

export type Rig = Awaited<ReturnType<typeof startRig>>;

const WARM_UP_CHECKS = 10;
const State = Type.Object({
  held: Type.Number(),
  refreshes: Type.Number(),
  signedOut: Type.Array(Type.String()),
});

export async function startRig({ trackBytes = 0, memoryMb, settings }: RigOptions) {
  await using stack = new AsyncDisposableStack();
  const { line: url } = stack.use(await startProgram('upstream.ts', String(trackBytes)));
  const addresses = { UPSTREAM_URL: url, IDP_URL: url, ...settings };
  const gateway = stack.use(await startLimitedGateway(addresses, memoryMb));
  await checkSessions(gateway.url, WARM_UP_CHECKS);
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
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await child.exited;
    },
  };
}

export async function startLimitedGateway(settings: Record<string, string>, memoryMb?: number) {
  await using stack = new AsyncDisposableStack();
  const cgroup = memoryMb === undefined ? undefined : await openMemoryCgroup(memoryMb * 1024 * 1024);
  if (memoryMb !== undefined && !cgroup) throw new Error('no memory cgroup can be made');
  stack.use(cgroup);
  const gateway = stack.use(await startGatewayProcess(settings, undefined, cgroup?.prefix));
  // An interrupted run skips the disposal.
  const onExit = () => gateway.kill('SIGKILL');
  process.once('exit', onExit);
  stack.defer(() => void process.off('exit', onExit));
  const running = stack.move();
  return { ...gateway, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

/** @throws Error when the response is wrong */
export async function checkSession(url: string): Promise<void> {
  const tls = { rejectUnauthorized: false };
  const response = await request(`${url}/api/auth/session`, { ...cookieOf('ada'), tls });
  const text = await response.text();
  if (response.status !== 200 || text !== '{"token":"Bearer ada"}')
    throw new Error(`a session check: ${response.status} ${text.slice(0, 80)}`);
}

/** @returns how long each of so many checks took, in milliseconds */
export async function checkSessions(url: string, count: number): Promise<number[]> {
  const durations: number[] = [];
  for (let index = 0; index < count; index++) {
    const before = performance.now();
    await checkSession(url);
    durations.push(performance.now() - before);
  }
  return durations;
}
