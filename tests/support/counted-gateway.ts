/** A gateway as a process whose work is counted instead of timed: the objects it makes, their bytes, and what it sends. */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { startGatewayProcess } from './gateway-process.ts';
import { program, type Requirement } from './requirements.ts';

const TRACE = ['strace', '-f', '-qq', '-e', 'signal=none', '-e', 'trace=sendto,sendmsg,writev'];
/** The gateway keeps the pid of its process, and strace becomes a child of it. */
const DETACHED = '-D';

const STRACE = program('strace');
/** No program, but CI must have it all the same: a container without it would guard nothing. */
const TRACING: Requirement = {
  name: 'the permission to trace a process (ptrace)',
  isMet: STRACE.isMet && Bun.spawnSync([...TRACE, '-o', '/dev/null', 'true']).success,
};
export const COUNTING = [STRACE, TRACING];

export interface Counts {
  /** JavaScript objects of every type, strings and closures included. */
  readonly objects: number;
  /** What these objects hold outside the heap: buffers, and the text of strings. */
  readonly bytes: number;
  /** System calls that send on a socket, to the client or the upstream. */
  readonly sends: number;
}

const REPORT = /^heap: (\d+) objects, (\d+) bytes$/;

/**
 * Without garbage collection every object stays and can be counted, and without compilation none is optimized away at a
 * moment that depends on the machine's load.
 */
const COUNTABLE = {
  BUN_JSC_useGC: '0',
  BUN_JSC_useJIT: '0',
  BUN_OPTIONS: `--preload ${import.meta.dir}/heap-report.ts`,
};

const WARM_UP = 30;

export async function startCountedGateway(upstreamUrl: string) {
  const folder = await mkdtemp(`${tmpdir()}/sends-`);
  const sendsFile = `${folder}/sends`;
  let line = Promise.withResolvers<RegExpExecArray>();
  const gateway = await startGatewayProcess(
    { UPSTREAM_URL: upstreamUrl, ...COUNTABLE },
    (written) => {
      const report = REPORT.exec(written);
      if (report) line.resolve(report);
    },
    [...TRACE, DETACHED, '-o', sendsFile],
  );

  async function total(): Promise<Counts> {
    line = Promise.withResolvers();
    gateway.kill('SIGUSR2');
    const [, objects, bytes] = await line.promise;
    const trace = await readFile(sendsFile, 'utf8');
    return {
      objects: Number(objects),
      bytes: Number(bytes),
      sends: trace.match(/^\d+ +send/gm)?.length ?? 0,
    };
  }

  return {
    url: gateway.url,
    /** What one request costs, as the mean of so many, to a tenth. */
    async costOf(send: (times: number) => Promise<void>, times: number): Promise<Counts> {
      await send(WARM_UP);
      const before = await total();
      await send(times);
      const after = await total();
      const mean = (count: keyof Counts) => Math.round(((after[count] - before[count]) / times) * 10) / 10;
      return { objects: mean('objects'), bytes: mean('bytes'), sends: mean('sends') };
    },
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await rm(folder, { recursive: true });
    },
  };
}
