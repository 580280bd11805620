/** `bun run static` runs it: fails where documents and packages disagree with the code. */

import { documentProblems } from './documents.ts';
import { packageProblems } from './packages.ts';
import { roomProblems } from './rooms.ts';
import { tableProblems } from './tables.ts';

const problems = [
  ...(await documentProblems()),
  ...(await tableProblems()),
  ...(await packageProblems()),
  ...(await roomProblems()),
];
for (const problem of problems) console.error(problem);
process.exit(problems.length ? 1 : 0);
