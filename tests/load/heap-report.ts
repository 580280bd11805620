/** Preloaded into a gateway that a test counts: on SIGUSR2 it writes what is in its heap to stdout, as one line: objects, and bytes outside. */

import { heapStats } from 'bun:jsc';

process.on('SIGUSR2', () => {
  const { objectTypeCounts, extraMemorySize } = heapStats();
  const objects = Object.values(objectTypeCounts).reduce((sum, count) => sum + count);
  console.log(`heap: ${objects} ${extraMemorySize}`);
});
