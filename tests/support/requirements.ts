/**
 * Tests that need more than Bun. With CI=true they fail where it is missing; elsewhere they are skipped, and a line says
 * which: at the end of a run, or with `--parallel` of each file.
 */

import { describe, it } from 'bun:test';

export interface Requirement {
  /** A program, or what the machine has to allow. */
  readonly name: string;
  readonly isMet: boolean;
}

/** A program on the PATH. `.ci/run` installs each of them. */
export function program(name: string): Requirement {
  return { name, isMet: Bun.which(name) !== null };
}

export const LINUX = { name: 'Linux', isMet: process.platform === 'linux' };
export const ROOT = { name: 'the rights of root', isMet: process.getuid?.() === 0 };

const IN_CI = Bun.env['CI'] === 'true';
const skipped: string[] = [];

/** `describe`, for tests that have these requirements. */
export function describeWith(requirements: readonly Requirement[], name: string, tests: () => void): void {
  describe.skipIf(lacks(requirements, name))(name, tests);
}

/** `it`, for a test that has these requirements. */
export function itWith(requirements: readonly Requirement[], name: string, test: () => Promise<void>): void {
  it.skipIf(lacks(requirements, name))(name, test);
}

function lacks(requirements: readonly Requirement[], name: string): boolean {
  const missing = requirements.flatMap((each) => (each.isMet ? [] : [each.name])).join(', ');
  if (missing === '') return false;
  skipped.push(`${name} (${missing})`);
  const fail = () => {
    throw new Error(`missing here: ${missing}. With CI=true no test may be skipped.`);
  };
  if (IN_CI) it(name, fail);
  return true;
}

/** Prints what this process has skipped since the last time, in one line. */
export function reportSkipped(): void {
  const names = skipped.splice(0);
  if (names.length > 0) console.log(`skipped, for what is missing here: ${names.join('; ')}`);
}
