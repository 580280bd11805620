import { describe, expect, it } from 'bun:test';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { eventually } from '../support/eventually.ts';
import { freePorts } from '../support/free-ports.ts';
import { isUp } from '../support/is-up.ts';
import { parseSamples } from '../support/metrics.ts';
import { ORIGIN } from '../support/world.ts';

/** Each has a line of some 300 bytes in the log, so that they fill a pipe of 64 KB several times over. */
const REQUESTS = 1000;
const PROJECT = new URL('../..', import.meta.url).pathname;
const NOBODY = 'http://127.0.0.1:9';

describe('a gateway continues, and ends at SIGTERM,', () => {
  it.each([
    ['when nobody reads its log', 'pipe', false, false],
    ['when the reader of its log has gone, which its metrics show', 'pipe', true, true],
    ['when its log is on a full disk, which its metrics show', '/dev/full', false, true],
  ] as const)('%s', async (_, log, readerLeaves, isCounted) => {
    const port = await freePorts(2);
    const url = `http://127.0.0.1:${port}`;
    const output = log === 'pipe' ? log : openSync(log, 'w');
    // Not with Bun's own spawn, which reads a pipe even when nobody asks for it.
    const gateway = spawn(process.execPath, ['src/index.ts'], {
      cwd: PROJECT,
      env: {
        ...{
          NODE_ENV: 'production',
          PORT: String(port),
          METRICS_PORT: String(port + 1),
          HOST: '127.0.0.1',
          ALLOWED_ORIGINS: ORIGIN,
        },
        ...{ UPSTREAM_URL: NOBODY, IDP_URL: NOBODY },
        ...{ IDP_CLIENT_ID: 'studio', IDP_REDIRECT_URI: `${ORIGIN}/callback` },
      },
      stdio: ['ignore', output, 'ignore'],
    });
    if (typeof output === 'number') closeSync(output);
    const exited = once(gateway, 'exit');
    try {
      await eventually(() => isUp(url), 'the gateway to listen');
      if (readerLeaves) gateway.stdout?.destroy();
      const ask = () => fetch(`${url}/api/music/models`, { headers: { origin: ORIGIN } });
      for (let sent = 0; sent < REQUESTS; sent++) expect((await ask()).status).toBe(401);
      const metrics = await fetch(`http://127.0.0.1:${port + 1}/metrics`);
      const failures = parseSamples(await metrics.text()).get('log_failures_total');
      if (isCounted) expect(failures).toBeGreaterThan(0);
      else expect(failures).toBe(0);
      gateway.kill('SIGTERM');
      expect(await exited).toEqual([0, null]);
    } finally {
      gateway.kill('SIGKILL');
      await exited;
    }
  });
});

/** More than may wait, to a pipe that nobody reads. */
const FLOOD = `
  import { openLog } from './src/gateway/telemetry/logger.ts';
  const { logger } = openLog({ logLevel: 'info' }, () => process.kill(process.pid, 'SIGUSR1'));
  for (let lines = 0; lines < 6; lines++) logger.info('x'.repeat(1024 * 1024));
`;

it('a log that nobody reads reports the lines that it drops', async () => {
  const flooded = spawn(process.execPath, ['-e', FLOOD], {
    cwd: PROJECT,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  try {
    expect(await once(flooded, 'exit')).toEqual([null, 'SIGUSR1']);
  } finally {
    flooded.kill('SIGKILL');
  }
});
