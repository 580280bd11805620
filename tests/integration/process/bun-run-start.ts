/** `bun run start` and `bun run check-config` as an operator would run them: with these settings and no others. */

import { settingNames } from '../../../src/gateway/settings/settings.ts';
import { ROOT } from '../../support/documents.ts';
import { linesOf } from '../../support/lines-of.ts';
import { runToEnd } from '../../support/run-to-end.ts';
import { ORIGIN } from '../../support/world.ts';

const SCRIPT = [process.execPath, 'run', '--silent'];
/** Empty counts as not set, so that a developer's own .env has no effect. */
const NO_SETTINGS = Object.fromEntries(settingNames().map((name) => [name, '']));

export const SETTINGS = {
  PORT: '0',
  HOST: '127.0.0.1',
  UPSTREAM_URL: 'http://127.0.0.1:1',
  IDP_URL: 'http://127.0.0.1:1',
  IDP_CLIENT_ID: 'studio',
  IDP_REDIRECT_URI: `${ORIGIN}/callback`,
  ALLOWED_ORIGINS: ORIGIN,
};

export type Started = Awaited<ReturnType<typeof start>>;

/** Resolves when the gateway listens. The child leads a process group of its own. */
export async function start(settings: Record<string, string> = {}) {
  const child = Bun.spawn([...SCRIPT, 'start'], {
    cwd: ROOT,
    env: { ...NO_SETTINGS, PATH: process.env['PATH'], ...SETTINGS, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const lines: unknown[] = [];
  const listening = Promise.withResolvers<string>();
  const ended = (async () => {
    for await (const line of linesOf(child.stdout)) {
      lines.push(JSON.parse(line));
      const url = /listens on (http:\/\/[\w.:]+)/.exec(line)?.[1];
      if (url) listening.resolve(url);
    }
    listening.reject(new Error(`the gateway did not start: ${JSON.stringify(lines)}`));
  })();
  const url = await listening.promise;
  return {
    child,
    url,
    /** Every line of the log so far; complete once `ended` has resolved. */
    lines,
    ended,
    async [Symbol.asyncDispose]() {
      // SIGKILL would end `bun run` and leave the gateway that it has started.
      child.kill('SIGTERM');
      await child.exited;
    },
  };
}

/** For settings with which the gateway does not start. */
export const startInVain = (settings: Record<string, string>) => runScript(['start'], settings);

export const checkConfig = (settings: Record<string, string>, ...options: string[]) =>
  runScript(['check-config', ...options], settings);

function runScript(script: readonly string[], settings: Record<string, string>) {
  const environment = { ...NO_SETTINGS, ...SETTINGS, ...settings };
  return runToEnd([...SCRIPT, ...script], { cwd: ROOT, environment });
}
