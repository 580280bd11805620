/** Tests that need more than Bun. In CI what is missing fails them; elsewhere they are skipped, and the reason is printed. */

import { describe, it } from 'bun:test';

export interface Requirement {
  readonly name: string;
  readonly isMet: boolean;
}

/** A program on the PATH. `.ci/run` installs each of them. */
export function program(name: string): Requirement {
  return { name, isMet: Bun.which(name) !== null };
}

export const LINUX: Requirement = { name: 'Linux', isMet: process.platform === 'linux' };

/** `describe`, for tests that have these requirements. */
export function describeWith(requirements: readonly Requirement[], name: string, tests: () => void): void {
  const problem = problemOf(requirements);
  if (problem === undefined) describe(name, tests);
  else if (isCi()) describe(name, () => it('has what it needs', () => fail(problem)));
  else {
    console.log(`skipped: ${name}: ${problem}`);
    describe.skip(name, tests);
  }
}

/** `it`, for a test that has these requirements. */
export function itWith(
  requirements: readonly Requirement[],
  name: string,
  test: () => Promise<void>,
  timeoutMs?: number,
): void {
  const problem = problemOf(requirements);
  if (problem === undefined) it(name, test, timeoutMs);
  else if (isCi()) it(name, () => fail(problem));
  else {
    console.log(`skipped: ${name}: ${problem}`);
    it.skip(name, test);
  }
}

function problemOf(requirements: readonly Requirement[]): string | undefined {
  const missing = requirements.filter(({ isMet }) => !isMet).map(({ name }) => name);
  return missing.length > 0 ? `missing here: ${missing.join(', ')}` : undefined;
}

function isCi(): boolean {
  return Bun.env['CI'] === 'true';
}

function fail(problem: string): never {
  throw new Error(`${problem}. With CI=true no test may be skipped.`);
}
