import { expect, it } from 'bun:test';

const OPEN = `
  import { openLog } from './src/gateway/telemetry/logger.ts';
  const { logger, close } = openLog({ logLevel: 'info' });
  logger.info('written at once');
  logger.info('collected');
`;

it.each([
  ['an error', "queueMicrotask(() => { throw new Error('a fault of the gateway'); });", 1],
  [
    'a line after the last one',
    "await close(); for (let line = 0; line < 999; line++) logger.info('late'.repeat(99));",
    0,
  ],
])('%s at the end of the process does not take the collected lines of the log with it', (_, end, status) => {
  const { stdout, exitCode } = Bun.spawnSync([process.execPath, '-e', OPEN + end], {
    cwd: new URL('../../..', import.meta.url).pathname,
    stderr: 'ignore',
  });
  expect(exitCode).toBe(status);
  expect(stdout.toString()).toMatch(/written at once.*collected/s);
  expect(stdout.toString()).not.toContain('late');
});
