/** Starts a program on one core, waits until it answers, and ends it by its process id, also when all is given up. */

import type { Subprocess } from 'bun';

/** One core for the contender, and one for what surrounds it: load generator, upstream, and this program. */
export const CONTENDER_CORE = 0;
export const REST_CORE = 1;

const START_LIMIT_MS = 20_000;
const STOP_LIMIT_MS = 2000;

export interface Program {
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly core: number;
  /** Where it will answer. */
  readonly url: string;
}

export interface Running extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  /** What it wrote, for the one who asks why it failed. */
  output(): string;
  /** From before it was started until its first answer. */
  readonly startMs: number;
}

const children = new Set<Subprocess>();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** It does not outlive this program, however that ends. */
export function endWithThisProgram(child: Subprocess): void {
  children.add(child);
  void child.exited.then(() => children.delete(child));
}

/** @throws Error when it ends or does not answer in time */
export async function startPinned({ command, env = {}, core, url }: Program): Promise<Running> {
  const begin = performance.now();
  const child = Bun.spawn(['taskset', '-c', `${core}`, ...command], {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  endWithThisProgram(child);
  let output = '';
  const read = async (stream: ReadableStream<Uint8Array>) => {
    for await (const chunk of stream) output = (output + Buffer.from(chunk).toString()).slice(-4000);
  };
  const outputRead = Promise.all([read(child.stdout), read(child.stderr)]);
  const stop = async () => {
    if (child.exitCode === null) child.kill('SIGTERM');
    const late = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
    await child.exited;
    clearTimeout(late);
    await outputRead;
  };
  while (!(await answers(url))) {
    if (child.exitCode !== null || performance.now() - begin > START_LIMIT_MS) {
      await stop();
      throw new Error(`${command.join(' ')} did not start:\n${output}`);
    }
    await Bun.sleep(1);
  }
  const startMs = performance.now() - begin;
  return { url, pid: child.pid, output: () => output, startMs, [Symbol.asyncDispose]: stop };
}

/** Whatever the answer is. */
async function answers(url: string): Promise<boolean> {
  try {
    await (await fetch(`${url}/api/health`, { keepalive: false })).arrayBuffer();
    return true;
  } catch {
    return false;
  }
}

/** What is running already, with all of its threads, moves out of the contender's way. */
export function pinToRest(pid: number): void {
  Bun.spawnSync(['taskset', '-a', '-c', '-p', `${REST_CORE}`, `${pid}`]);
}
