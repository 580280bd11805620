/** The gateway as a process of its own. */

import { ORIGIN } from './world.ts';

export interface GatewayProcess extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  /** What it has written to stderr so far. */
  readonly errors: () => string;
  kill(signal: NodeJS.Signals): void;
  readonly exited: Promise<number>;
}

/** Starts what `bun run start` ends in, so that a signal reaches the gateway itself, and waits until it listens. */
export async function startGatewayProcess(settings: Record<string, string>): Promise<GatewayProcess> {
  const child = Bun.spawn([process.execPath, 'src/index.ts'], {
    cwd: new URL('../..', import.meta.url).pathname,
    env: {
      BUN_CONFIG_MAX_HTTP_REQUESTS: '20000',
      PORT: '0',
      HOST: '127.0.0.1',
      IDP_URL: 'http://127.0.0.1:1',
      IDP_CLIENT_ID: 'studio',
      IDP_REDIRECT_URI: `${ORIGIN}/callback`,
      ALLOWED_ORIGINS: ORIGIN,
      ...settings,
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  let errors = '';
  const errorsRead = (async () => {
    for await (const chunk of child.stderr) errors += Buffer.from(chunk).toString();
  })();
  let output = '';
  for await (const chunk of child.stdout) {
    output += Buffer.from(chunk).toString();
    if (output.includes('\n')) break;
  }
  const [url] = /http:\/\/[\w.:]+/.exec(output) ?? [];
  if (!url) throw new Error(`the gateway did not start:\n${output}${errors}`);
  return {
    url,
    pid: child.pid,
    errors: () => errors,
    kill: (signal) => child.kill(signal),
    exited: child.exited,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await Promise.all([child.exited, errorsRead]);
    },
  };
}
