/** The upstream as a process of its own, and what it reports of itself. */

import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { eventually } from '../../support/eventually.ts';

const UpstreamFigures = Type.Object({
  /** Calls that have had to wait for the release, released ones too. */
  held: Type.Integer(),
  /** Calls to what it does not serve. */
  unexpected: Type.Integer(),
  refreshes: Type.Integer(),
  /** Refresh tokens that arrived a second time. */
  reused: Type.Integer(),
});

export interface UpstreamProcess extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  kill(): void;
  figures(): Promise<Static<typeof UpstreamFigures>>;
  /** Resolves when so many calls have had to wait. */
  holds(count: number): Promise<void>;
  /** Responds to all calls that wait, now and later. */
  release(): Promise<void>;
}

export interface UpstreamOptions {
  readonly trackFolder: string;
  /** How often an access token can be used; 0: without end. */
  readonly usesPerToken: number;
  /** How long it leaves a silent connection open, one with a waiting call too. */
  readonly idleSeconds: number;
}

export async function startUpstreamProcess(options: UpstreamOptions): Promise<UpstreamProcess> {
  const { trackFolder, usesPerToken, idleSeconds } = options;
  const program = new URL('upstream-main.ts', import.meta.url).pathname;
  const child = Bun.spawn([process.execPath, program, trackFolder, `${usesPerToken}`, `${idleSeconds}`], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  });
  let url = '';
  for await (const chunk of child.stdout) {
    url += Buffer.from(chunk).toString();
    if (url.endsWith('\n')) break;
  }
  url = url.trim();
  if (!url) throw new Error('the upstream did not start');
  const figures = async () =>
    Value.Parse(UpstreamFigures, await (await fetch(`${url}/control/figures`)).json());
  return {
    url,
    pid: child.pid,
    kill: () => child.kill('SIGKILL'),
    figures,
    async holds(count) {
      await eventually(async () => (await figures()).held >= count, `${count} waiting calls`, 120_000);
    },
    async release() {
      await fetch(`${url}/control/release`, { method: 'POST' });
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await child.exited;
    },
  };
}
