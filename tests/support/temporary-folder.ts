/** A folder for the files of one test. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';

export async function createFolder() {
  const path = await mkdtemp(`${tmpdir()}/music-gateway-test-`);
  // A program that is just being killed may still write to it.
  const remove = () => rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  return { path, [Symbol.asyncDispose]: remove };
}
