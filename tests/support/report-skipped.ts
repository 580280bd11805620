/** Loaded before the tests by `bunfig.toml`: reports at their end which were skipped. */

import { afterAll } from 'bun:test';
import { reportSkipped } from './requirements.ts';

afterAll(reportSkipped);
