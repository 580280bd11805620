/** `bun run start` and `bun run check-config` as an operator would run them: with these settings and no others. */

import { settingNames } from '../../../src/gateway/settings/settings.ts';
import { ROOT } from '../../support/documents.ts';
import { eventually } from '../../support/eventually.ts';
import { linesOf } from '../../support/lines-of.ts';
import { runToEnd } from '../../support/run-to-end.ts';
import { REQUIRED } from '../../support/world.ts';

const SCRIPT = [process.execPath, 'run', '--silent'];

export const SETTINGS = { ...REQUIRED, PORT: '0', HOST: '127.0.0.1' };
/** Empty counts as not set, so that a developer's own .env has no effect. */
const ALL = { ...Object.fromEntries(settingNames().map((name) => [name, ''])), ...SETTINGS };

export type Started = Awaited<ReturnType<typeof start>>;

/** Resolves when the gateway listens. The child leads a process group of its own. */
export async function start(settings: Record<string, string> = {}) {
  const child = Bun.spawn([...SCRIPT, 'start'], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], ...ALL, ...settings },
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  });
  const lines: unknown[] = [];
  let listensOn: string | undefined;
  const ended = (async () => {
    for await (const line of linesOf(child.stdout)) {
      lines.push(JSON.parse(line));
      listensOn ??= /listens on (http:\/\/[\w.:]+)/.exec(line)?.[1];
    }
  })();
  return {
    child,
    url: await eventually(() => listensOn, 'the gateway to listen'),
    /** Every line of the log so far; complete once `ended` has resolved. */
    lines,
    ended,
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}

/** Runs a script that ends: `check-config`, or `start` where the gateway does not start. */
export function runScript(script: readonly string[], settings: Record<string, string>) {
  return runToEnd([...SCRIPT, ...script], { cwd: ROOT, environment: { ...ALL, ...settings } });
}
