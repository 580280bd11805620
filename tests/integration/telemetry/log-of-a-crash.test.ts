import { expect, it } from 'bun:test';

const CRASH = `
  import { openLog } from './src/gateway/telemetry/logger.ts';
  const { logger } = openLog({ logLevel: 'info' });
  logger.info('written at once');
  logger.info('collected');
  queueMicrotask(() => { throw new Error('a fault of the gateway'); });
`;

it('an error that ends the process does not take the collected lines of the log with it', async () => {
  const { stdout, exitCode } = Bun.spawnSync([process.execPath, '-e', CRASH], {
    cwd: new URL('../../..', import.meta.url).pathname,
    stderr: 'ignore',
  });
  expect(exitCode).toBe(1);
  expect(stdout.toString()).toContain('written at once');
  expect(stdout.toString()).toContain('collected');
});
