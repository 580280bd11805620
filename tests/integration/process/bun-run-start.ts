/** `bun run start` and `bun run check-config` as an operator would run them: with these settings and no others. */

import { settingNames } from '../../../src/gateway/settings/settings.ts';
import { ROOT } from '../../support/documents.ts';
import { SETTINGS, whenListening } from '../../support/gateway-process.ts';
import { runToEnd } from '../../support/run-to-end.ts';

const SCRIPT = [process.execPath, 'run', '--silent'];

/** Empty counts as not set, so that a developer's own .env has no effect. */
const ALL = { ...Object.fromEntries(settingNames().map((name) => [name, ''])), ...SETTINGS };

export type Started = Awaited<ReturnType<typeof start>>;

/** Resolves when the gateway listens. The child leads a process group of its own. */
export async function start(settings: Record<string, string> = {}) {
  const child = Bun.spawn([...SCRIPT, 'start'], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], ...ALL, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const lines: unknown[] = [];
  const gateway = await whenListening(child, (line) => lines.push(JSON.parse(line)));
  // With SIGTERM, which `bun run` passes on.
  return { ...gateway, lines, [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
}

/** Runs a script that ends: `check-config`, or `start` where the gateway does not start. */
export function runScript(script: readonly string[], settings: Record<string, string>) {
  return runToEnd([...SCRIPT, ...script], { cwd: ROOT, environment: { ...ALL, ...settings } });
}
