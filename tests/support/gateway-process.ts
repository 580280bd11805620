/** The gateway as a process of its own, in production mode. */

import { ROOT } from './documents.ts';
import { linesOf } from './lines-of.ts';
import { REQUIRED } from './world.ts';

export type GatewayProcess = Awaited<ReturnType<typeof startGatewayProcess>>;

const ROUTINE = /^\{"level":"info".*"msg":"request"\}$/;
const WARNING = /^\{"level":"(?:warn|error|fatal)"/;
/** Of a gateway on a free port. */
export const SETTINGS = { ...REQUIRED, PORT: '0', HOST: '127.0.0.1' };

/**
 * Starts what `bun run start` ends in, so that a signal reaches the gateway itself, and waits until it listens.
 *
 * @param onLine sees every line of the log; only those that are no routine are kept
 * @param prefix a command that runs the gateway as its own process
 */
export async function startGatewayProcess(
  settings: Record<string, string>,
  onLine: (line: string) => void = () => {},
  prefix: readonly string[] = [],
) {
  const env = { BUN_CONFIG_MAX_HTTP_REQUESTS: '20000', NODE_ENV: 'production', ...SETTINGS };
  const child = Bun.spawn([...prefix, process.execPath, 'src/index.ts'], {
    cwd: ROOT,
    env: { ...env, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return whenListening(child, onLine);
}

/** Waits until the gateway in this process listens. */
export async function whenListening(
  child: Bun.Subprocess<'ignore', 'pipe', 'pipe'>,
  onLine: (line: string) => void,
) {
  await using stack = new AsyncDisposableStack();
  let errors = '';
  const errorsRead = (async () => {
    for await (const chunk of child.stderr) errors += Buffer.from(chunk).toString();
  })();
  const lines: string[] = [];
  const { promise: started, resolve: start } = Promise.withResolvers<string | undefined>();
  const logRead = (async () => {
    for await (const line of linesOf(child.stdout)) {
      onLine(line);
      if (ROUTINE.test(line)) continue;
      lines.push(line);
      const url = /listens on (http:\/\/[\w.:]+)/.exec(line)?.[1];
      if (url) start(url);
    }
    start(undefined);
  })();
  stack.defer(async () => {
    child.kill('SIGKILL');
    await Promise.all([child.exited, errorsRead, logRead]);
  });
  const url = await started;
  if (!url) throw new Error(`the gateway did not start:\n${lines.join('\n')}\n${errors}`);
  const running = stack.move();
  return {
    url,
    pid: child.pid,
    /** What it has warned of so far, in its log or on stderr. */
    errors: () => lines.filter((line) => WARNING.test(line)).join('\n') + errors,
    stderr: () => errors,
    /** How often it has said so in its log, in a line that is not about a request. */
    said: (text: string) => lines.filter((line) => line.includes(text)).length,
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    /** Resolves with its status when everything that it has written is read. */
    exited: Promise.all([errorsRead, logRead]).then(() => child.exited),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
