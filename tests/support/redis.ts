/** A real redis-server, started by the test and gone after it. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { RedisClient } from 'bun';
import { freePorts } from './free-ports.ts';
import { program } from './requirements.ts';

export const REDIS_SERVER = program('redis-server');

export interface Redis extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Its working directory, which is removed with it. */
  readonly folder: string;
  /** Ends the server; its data is lost. */
  stop(): Promise<void>;
  /** @param options for this start, beside its usual ones */
  start(...options: string[]): Promise<void>;
  /** SIGSTOP and SIGCONT: it runs, and does not respond. */
  stall(): void;
  resume(): void;
}

/** @param ownOptions for every start, such as `--tls-port` with a number */
export async function startRedis(...ownOptions: string[]): Promise<Redis> {
  const port = await freePorts(1);
  const folder = await mkdtemp(`${tmpdir()}/redis-`);
  let server: Bun.Subprocess<'ignore', 'pipe', 'inherit'> | undefined;
  const redis: Redis = {
    url: `redis://127.0.0.1:${port}`,
    port,
    folder,
    async start(...options) {
      const usual = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
      server = Bun.spawn([REDIS_SERVER.name, ...usual, '--dir', folder, ...ownOptions, ...options], {
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'inherit',
      });
      let output = '';
      for await (const chunk of server.stdout) {
        output += Buffer.from(chunk).toString();
        if (output.includes('Ready to accept connections')) return;
      }
      throw new Error(`redis-server did not start:\n${output}`);
    },
    async stop() {
      server?.kill('SIGKILL');
      await server?.exited;
    },
    stall: () => server?.kill('SIGSTOP'),
    resume: () => server?.kill('SIGCONT'),
    async [Symbol.asyncDispose]() {
      await redis.stop();
      await rm(folder, { recursive: true });
    },
  };
  await redis.start();
  return redis;
}

/** Looks at Redis, and changes it, behind the gateway's back. */
export class RedisAdmin extends RedisClient implements Disposable {
  /** All keys. */
  kept(): Promise<string[]> {
    return this.keys('*');
  }

  [Symbol.dispose]() {
    this.close();
  }
}
