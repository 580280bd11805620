/** Reads individual settings from the environment, and collects what is wrong with them. */

import { readFileSync } from 'node:fs';
import { isAbsolute } from 'node:path';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Around a value, or an entry of a list. */
const QUOTES = /^(["'])((?:(?!\1).)*)\1$/s;
const COMMENT = /(?:^|\s)#.*$/s;

/** Says what is wrong with a value, or returns undefined. */
type FindProblem = (value: string) => string | undefined;

/** An empty value counts as not set. Every problem names its setting. */
export class EnvironmentReader {
  readonly environment: Environment;
  /** Every setting that has been read. */
  readonly names = new Set<string>();
  readonly problems: string[] = [];
  readonly warnings: string[] = [];
  /** Whether a required setting is missing. */
  isIncomplete = false;

  constructor(environment: Environment) {
    this.environment = environment;
  }

  text(name: string, fallback = ''): string {
    return this.#unquoted(name, this.#uncommented(name)) || fallback;
  }

  required(name: string): string {
    const value = this.text(name);
    if (!value) {
      this.isIncomplete = true;
      this.problems.push(`${name} is required and not set`);
    }
    return value;
  }

  /** The entries of a comma-separated list. */
  list(name: string): string[] {
    const entries = this.text(name).split(',');
    return entries.map((entry) => this.#unquoted(name, entry.trim())).filter(Boolean);
  }

  /**
   * Reads a setting that may also be in a file, whose path is in `<name>_FILE`, because other processes can see the
   * environment. White space around the value does not count, such as the last line break of a file.
   */
  secret(name: string): string {
    // It may contain what looks like a comment.
    const value = this.#unquoted(name, this.#raw(name));
    const file = this.text(`${name}_FILE`);
    if (!file) return value;
    if (value) this.problems.push(`${name} and ${name}_FILE must not both be set`);
    if (!isAbsolute(file)) {
      // The problem does not quote it, because it may be the secret itself.
      this.problems.push(`${name}_FILE must be an absolute path`);
      return '';
    }
    try {
      const content = readFileSync(file, 'utf8').trim();
      if (!content) this.problems.push(`${name}_FILE: ${file} is empty`);
      return content;
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : error;
      this.problems.push(`${name}_FILE: ${file} cannot be read (${code})`);
      return '';
    }
  }

  #raw(name: string): string {
    this.names.add(name);
    return this.environment[name]?.trim() ?? '';
  }

  #uncommented(name: string): string {
    const value = this.#raw(name);
    if (QUOTES.test(value) || !COMMENT.test(value)) return value;
    this.#leftover(`${name}: a comment has stayed in the value: give it a line of its own`);
    return value.replace(COMMENT, '');
  }

  #unquoted(name: string, value: string): string {
    const [, , inner] = QUOTES.exec(value) ?? [];
    if (inner === undefined) return value;
    this.#leftover(
      `${name}: quotes have stayed in the value: leave them out, as docker and podman keep those of an env file`,
    );
    return inner.trim();
  }

  /** A setting may be read more than once. */
  #leftover(problem: string): void {
    if (!this.problems.includes(problem)) this.problems.push(problem);
  }

  optional(name: string, findProblem: FindProblem, value = this.text(name)): string | undefined {
    const problem = value && findProblem(value);
    if (problem) this.problems.push(`${name} ${problem}`);
    return value || undefined;
  }

  /** Reads a required setting and validates it. */
  checked(name: string, findProblem: FindProblem): string {
    return this.optional(name, findProblem, this.required(name)) ?? '';
  }

  integer(name: string, fallback: number, least: number, most: number): number {
    const value = this.text(name, String(fallback));
    const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
    if (number >= least && number <= most) return number;
    this.problems.push(`${name} must be a whole number from ${least} to ${most}, not "${value}"`);
    return fallback;
  }

  flag(name: string): boolean {
    return this.oneOf(name, ['true', 'false'], 'false') === 'true';
  }

  oneOf<const Word extends string>(name: string, words: readonly Word[], fallback: NoInfer<Word>): Word {
    const value = this.text(name, fallback);
    const word = words.find((each) => each === value);
    if (word !== undefined) return word;
    const choice = new Intl.ListFormat('en', { type: 'disjunction' }).format(words);
    this.problems.push(`${name} must be ${choice}, not "${value}"`);
    return fallback;
  }
}
