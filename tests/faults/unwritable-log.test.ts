import { describe, expect, it } from 'bun:test';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { freePorts } from '../support/free-ports.ts';
import { isUp } from '../support/is-up.ts';
import { ORIGIN } from '../support/world.ts';

/** Each has a line of some 300 bytes in the log, so that they fill any pipe many times over. */
const REQUESTS = 3000;

interface Started extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly url: string;
}

/** Not with Bun's own spawn, which reads a pipe whether anybody asks for it or not. */
async function start(stdout: 'pipe' | number): Promise<Started> {
  const port = await freePorts(1);
  const child = spawn(process.execPath, ['src/index.ts'], {
    cwd: new URL('../..', import.meta.url).pathname,
    env: {
      NODE_ENV: 'production',
      PORT: String(port),
      HOST: '127.0.0.1',
      UPSTREAM_URL: 'http://127.0.0.1:9',
      IDP_URL: 'http://127.0.0.1:9',
      IDP_CLIENT_ID: 'studio',
      IDP_REDIRECT_URI: `${ORIGIN}/callback`,
      ALLOWED_ORIGINS: ORIGIN,
    },
    stdio: ['ignore', stdout, 'ignore'],
  });
  const exited = once(child, 'exit');
  const url = `http://127.0.0.1:${port}`;
  while (!(await isUp(url))) await Bun.sleep(20);
  return {
    child,
    url,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      if (child.exitCode === null) await exited;
    },
  };
}

describe('a gateway goes on, and ends when it is told to,', () => {
  it.each([
    ['when nobody reads its log', 'pipe', () => {}],
    ['when the reader of its log has gone', 'pipe', ({ child }: Started) => child.stdout?.destroy()],
    ['when its log is on a full disk', '/dev/full', () => {}],
  ] as const)('%s', async (_, stdout, begin) => {
    await using gateway = await start(stdout === 'pipe' ? stdout : openSync(stdout, 'w'));
    begin(gateway);
    const ask = () => fetch(`${gateway.url}/api/music/models`, { headers: { origin: ORIGIN } });
    for (let sent = 0; sent < REQUESTS; sent++) expect((await ask()).status).toBe(401);
    const exited = once(gateway.child, 'exit');
    gateway.child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
  });
});
