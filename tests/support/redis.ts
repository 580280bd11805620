/** A real redis-server, started by the test and gone after it. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { RedisClient } from 'bun';
import { refreshTokenHash } from '../../src/gateway/refresh/sealed-pair.ts';
import { freePorts } from './free-ports.ts';
import { program } from './requirements.ts';

export const REDIS_SERVER = program('redis-server');

export interface Redis extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Ends the server; its data is lost. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** SIGSTOP and SIGCONT: it runs, and does not respond. */
  stall(): void;
  resume(): void;
}

export async function startRedis(): Promise<Redis> {
  const port = await freePorts(1);
  const folder = await mkdtemp(`${tmpdir()}/redis-`);
  let server: Bun.Subprocess<'ignore', 'pipe', 'inherit'> | undefined;
  const redis: Redis = {
    url: `redis://127.0.0.1:${port}`,
    port,
    async start() {
      const options = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
      server = Bun.spawn([REDIS_SERVER.name, ...options, '--dir', folder], {
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

const RECORD_PREFIX = 'music-gateway:refresh:';

/** Looks at Redis, and changes it, behind the gateway's back. */
export class RedisAdmin extends RedisClient implements Disposable {
  /** What is left of the lives of all keys, or of a token's record, in milliseconds. */
  async lifetimes(token?: string): Promise<number[]> {
    const keys = token === undefined ? await this.keys('*') : [RECORD_PREFIX + refreshTokenHash(token)];
    return Promise.all(keys.map((key) => this.pttl(key)));
  }

  record(token: string): Promise<string | null> {
    return this.get(RECORD_PREFIX + refreshTokenHash(token));
  }

  [Symbol.dispose]() {
    this.close();
  }
}
