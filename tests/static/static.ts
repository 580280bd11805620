/** `bun run static` runs it: fails where documents and packages disagree with the code. */

import { benchProblems } from './bench.ts';
import { documentProblems } from './documents.ts';
import { packageProblems } from './packages.ts';
import { tableProblems } from './tables.ts';

const problems = [
  ...(await documentProblems()),
  ...(await tableProblems()),
  ...(await packageProblems()),
  ...(await benchProblems()),
];
for (const problem of problems) console.error(problem);
process.exit(problems.length ? 1 : 0);
