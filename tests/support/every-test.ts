/**
 * Loaded before the tests by `bunfig.toml`: gives each test the real time, and reports which were skipped, at the end of
 * all or, with `--parallel`, of each file.
 */

import { afterAll, afterEach, jest, setSystemTime } from 'bun:test';
import { backToNow } from './later.ts';
import { reportSkipped } from './requirements.ts';

// A test that has timed out would otherwise leave its faked time to the others of this process.
afterEach(() => {
  jest.useRealTimers();
  setSystemTime();
  backToNow();
});
afterAll(reportSkipped);
