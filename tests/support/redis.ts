/** A real redis-server, started by the test and gone after it. */

import { RedisClient } from 'bun';
import { freePorts } from './free-ports.ts';
import { program } from './requirements.ts';
import { createFolder } from './temporary-folder.ts';

export const REDIS_SERVER = program('redis-server');
/** The BUN_OPTIONS of a gateway process that does not take a slow Redis for one that is down. */
export const PATIENT_WITH_REDIS = `--preload=${import.meta.dir}/patient-redis.ts`;

export type Redis = Awaited<ReturnType<typeof startRedis>>;

/** @param ownOptions for every start, such as `--tls-port` with a number */
export async function startRedis(...ownOptions: string[]) {
  const port = await freePorts(1);
  const folder = await createFolder();
  const usual = `--port ${port} --bind 127.0.0.1 --appendonly no --save`.split(' ');
  const launch = (options: string[]) => {
    const command = [REDIS_SERVER.name, ...usual, '', '--dir', folder.path, ...ownOptions, ...options];
    return Bun.spawn(command, { stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' });
  };
  let server: ReturnType<typeof launch> | undefined;
  const redis = {
    url: `redis://127.0.0.1:${port}`,
    port,
    /** Its working directory, which is removed with it. */
    folder: folder.path,
    /** @param options for this start, beside its usual ones */
    async start(...options: string[]) {
      server = launch(options);
      let output = '';
      for await (const chunk of server.stdout) {
        output += Buffer.from(chunk).toString();
        if (output.includes('Ready to accept connections')) return;
      }
      throw new Error(`redis-server did not start:\n${output}`);
    },
    /** Ends the server; its data is lost. */
    async stop() {
      server?.kill('SIGKILL');
      await server?.exited;
    },
    /** SIGSTOP and SIGCONT: it runs, and does not respond. */
    stall: () => server?.kill('SIGSTOP'),
    resume: () => server?.kill('SIGCONT'),
    async [Symbol.asyncDispose]() {
      await redis.stop();
      await folder[Symbol.asyncDispose]();
    },
  };
  await redis.start();
  return redis;
}

/** Looks at Redis, and changes it, behind the gateway's back. */
export class RedisAdmin extends RedisClient implements Disposable {
  [Symbol.dispose]() {
    this.close();
  }
}
