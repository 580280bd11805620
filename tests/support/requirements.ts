/**
 * Tests that need more than Bun. In CI a missing program fails them; elsewhere, and where the machine itself does not
 * allow them, they are skipped, and the reason is printed.
 */

import { describe, it } from 'bun:test';

export interface Requirement {
  readonly name: string;
  readonly isMet: boolean;
  /** Whether it can be installed, so that CI must have it. */
  readonly isProgram: boolean;
}

/** A program on the PATH. `.ci/run` installs each of them. */
export function program(name: string): Requirement {
  return { name, isMet: Bun.which(name) !== null, isProgram: true };
}

/** What the machine has to allow. */
export function machine(name: string, isMet: boolean): Requirement {
  return { name, isMet, isProgram: false };
}

export const LINUX = machine('Linux', process.platform === 'linux');
export const ROOT = machine('the rights of root', process.getuid?.() === 0);

/** `describe`, for tests that have these requirements. */
export function describeWith(requirements: readonly Requirement[], name: string, tests: () => void): void {
  const problem = problemOf(requirements);
  if (problem === undefined) describe(name, tests);
  else if (mustNotSkip(requirements)) describe(name, () => it('has what it needs', () => fail(problem)));
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
  else if (mustNotSkip(requirements)) it(name, () => fail(problem));
  else {
    console.log(`skipped: ${name}: ${problem}`);
    it.skip(name, test);
  }
}

function problemOf(requirements: readonly Requirement[]): string | undefined {
  const missing = requirements.filter(({ isMet }) => !isMet).map(({ name }) => name);
  return missing.length > 0 ? `missing here: ${missing.join(', ')}` : undefined;
}

function mustNotSkip(requirements: readonly Requirement[]): boolean {
  return Bun.env['CI'] === 'true' && requirements.every(({ isMet, isProgram }) => isMet || isProgram);
}

function fail(problem: string): never {
  throw new Error(`${problem}. With CI=true no test may be skipped.`);
}
