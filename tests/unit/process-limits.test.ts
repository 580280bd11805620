import { expect, it, spyOn } from 'bun:test';
import { totalmem } from 'node:os';
import { ledgerBytes, memoryLimitBytes } from '../../src/gateway/settings/memory.ts';
import { limitWarnings } from '../../src/gateway/settings/process-limits.ts';
import { ROOT } from '../support/documents.ts';

const MiB = 1024 ** 2;
/** 5,650 calls with those of the short kinds: 11,500 open files. */
const SETTINGS = { maxInFlightRequests: 4000, traceShare: undefined };
const FETCHES = 'BUN_CONFIG_MAX_HTTP_REQUESTS';

const few = (limit: string) =>
  `${FETCHES} is ${limit}, less than the 5650 calls that may be in flight with MAX_IN_FLIGHT_REQUESTS (4000); ` +
  'start with "bun run start"';
const FILES = 'the limit of 11499 open files is too low for MAX_IN_FLIGHT_REQUESTS, which needs 11500';
const MEMORY = 'the process may use 103 MiB of memory, and needs 104 MiB';

it.each<[string, fetches: string, openFiles: number, MiB: number, warnings: string[]]>([
  ['nothing of limits that are just high enough', '5650', 11_500, 104, []],
  ['that Bun allows fewer fetches by default', '', 11_500, 104, [few('256')]],
  ['that the limit of fetches is no number', '20k', 11_500, 104, [few('20k')]],
  ['everything at once', '5649', 11_499, 103, [few('5649'), FILES, MEMORY]],
])('limitWarnings() says %s', (_, fetches, openFiles, limit, warnings) => {
  const settings = { ...SETTINGS, memoryLimitBytes: limit * MiB };
  expect(limitWarnings(settings, { [FETCHES]: fetches }, openFiles)).toEqual(warnings);
});

it('openFilesLimit() is what the system gives the process', () => {
  const program = `console.log(require('./src/gateway/settings/process-limits.ts').openFilesLimit())`;
  const command = ['sh', '-c', 'ulimit -n 321; exec "$@"', 'sh', process.execPath, '-e', program];
  const { stdout } = Bun.spawnSync(command, { cwd: ROOT });
  expect(stdout.toString()).toBe('321\n');
});

it.each([
  ['the limit of its container', 256 * MiB, 256 * MiB],
  ['the memory of the machine without one', 0, totalmem()],
  ['the memory of the machine when that is less', 2 ** 62, totalmem()],
])('memoryLimitBytes() is %s', (_, limit, bytes) => {
  using _limit = spyOn(process, 'constrainedMemory').mockReturnValue(limit);
  expect(memoryLimitBytes()).toBe(bytes);
});

it.each([
  ['what the process leaves', 256, undefined, 192],
  ['what the process and its traces leave', 256, 0, 152],
  ['40 MiB where less is left', 64, undefined, 40],
])('ledgerBytes() is %s', (_, limit, traceShare, ledger) => {
  expect(ledgerBytes({ memoryLimitBytes: limit * MiB, traceShare })).toBe(ledger * MiB);
});
