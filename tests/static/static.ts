/** `bun run static` runs it: fails where documents, packages and workflows disagree with the code. */

import { documentProblems } from './documents.ts';
import { packageProblems } from './packages.ts';
import { roomProblems } from './rooms.ts';
import { tableProblems } from './tables.ts';
import { workflowProblems } from './workflows.ts';

const problems = [
  ...(await documentProblems()),
  ...(await tableProblems()),
  ...(await packageProblems()),
  ...(await roomProblems()),
  ...(await workflowProblems()),
];
for (const problem of problems) console.error(problem);
process.exit(problems.length ? 1 : 0);
