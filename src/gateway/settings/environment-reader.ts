/** Reads individual settings from the environment, and collects every problem with them. */

export type Environment = Readonly<Record<string, string | undefined>>;

/** The longest delay that a timer accepts; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** An empty value counts as not set. Every problem names its setting and says what is wrong. */
export class EnvironmentReader {
  /** Every setting that has been read. */
  readonly names = new Set<string>();
  readonly problems: string[] = [];
  readonly #environment: Environment;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  text(name: string, fallback: string): string {
    this.names.add(name);
    return this.#environment[name]?.trim() || fallback;
  }

  required(name: string): string {
    const value = this.text(name, '');
    if (!value) this.problems.push(`${name} is required and not set`);
    return value;
  }

  optional(name: string, problemWith: (value: string) => string | undefined): string | undefined {
    const value = this.text(name, '');
    const problem = value && problemWith(value);
    if (problem) this.problems.push(`${name} ${problem}`);
    return value || undefined;
  }

  /** Reads a required setting and validates it. */
  checked(name: string, problemWith: (value: string) => string | undefined): string {
    this.required(name);
    return this.optional(name, problemWith) ?? '';
  }

  integer(name: string, fallback: number, least: number, most: number): number {
    const value = this.text(name, String(fallback));
    const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
    if (number >= least && number <= most) return number;
    this.problems.push(`${name} must be a whole number from ${least} to ${most}, not "${value}"`);
    return fallback;
  }

  timeoutMs(name: string, fallback: number): number {
    return this.integer(name, fallback, 1, MAX_TIMER_MS);
  }

  flag(name: string): boolean {
    return this.oneOf(name, ['true', 'false'], 'false') === 'true';
  }

  oneOf<Word extends string>(name: string, words: readonly Word[], fallback: Word): Word {
    const value = this.text(name, fallback);
    const word = words.find((each) => each === value);
    if (word === undefined)
      this.problems.push(
        `${name} must be ${words.length > 2 ? `one of ${words.join(', ')}` : words.join(' or ')}, not "${value}"`,
      );
    return word ?? fallback;
  }
}
