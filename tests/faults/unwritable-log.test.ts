import { expect, it } from 'bun:test';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { ROOT } from '../support/documents.ts';
import { eventually } from '../support/eventually.ts';
import { freePorts } from '../support/free-ports.ts';
import { isUp } from '../support/is-up.ts';
import { parseSamples } from '../support/metrics.ts';
import { REQUIRED, request } from '../support/world.ts';

/** Each has a line of some 300 bytes in the log, so that they fill a pipe of 64 KB several times over. */
const REQUESTS = 800;

/** Not with Bun's own spawn, which reads a pipe even when nobody asks for it. */
async function start(log: 'pipe' | number) {
  await using stack = new AsyncDisposableStack();
  const port = await freePorts(2);
  const gateway = spawn(process.execPath, ['src/index.ts'], {
    cwd: ROOT,
    env: {
      ...REQUIRED,
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      PORT: String(port),
      METRICS_PORT: String(port + 1),
    },
    stdio: ['ignore', log, 'ignore'],
  });
  const exited = once(gateway, 'exit');
  stack.defer(async () => {
    gateway.kill('SIGKILL');
    await exited;
  });
  await eventually(() => isUp(`http://127.0.0.1:${port}`), 'the gateway to listen');
  const running = stack.move();
  return { gateway, port, exited, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

it.each([
  ['when nobody reads its log', 'pipe', false, false],
  ['when the reader of its log has gone, which its metrics show', 'pipe', true, true],
  ['when its log is on a full disk, which its metrics show', '/dev/full', false, true],
] as const)('a gateway continues, and ends at SIGTERM, %s', async (_, log, readerLeaves, isCounted) => {
  const output = log === 'pipe' ? log : openSync(log, 'w');
  await using started = await start(output);
  const { gateway, port, exited } = started;
  if (typeof output === 'number') closeSync(output);
  if (readerLeaves) gateway.stdout?.destroy();
  for (let sent = 0; sent < REQUESTS; sent++) {
    const { status } = await request(`http://127.0.0.1:${port}/api/music/models`, {});
    expect(status).toBe(401);
  }
  const metrics = await fetch(`http://127.0.0.1:${port + 1}/metrics`);
  const failures = parseSamples(await metrics.text()).get('log_failures_total');
  if (isCounted) expect(failures).toBePositive();
  else expect(failures).toBe(0);
  gateway.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
});

it('a log that nobody reads reports the lines that it drops', async () => {
  // More than may wait.
  const flood = `
    const { openLog } = await import('./src/gateway/telemetry/logger.ts');
    const { logger } = openLog({ logLevel: 'info' }, () => process.kill(process.pid, 'SIGUSR1'));
    for (let lines = 0; lines < 6; lines++) logger.info('x'.repeat(1024 * 1024));`;
  const flooded = spawn(process.execPath, ['-e', flood], { cwd: ROOT, stdio: ['ignore', 'pipe', 'ignore'] });
  expect(await once(flooded, 'exit')).toEqual([null, 'SIGUSR1']);
});
