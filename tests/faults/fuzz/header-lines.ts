/** Looks into header lines, of a request or of a response. */

/** The name is in lower case. */
export type HeaderLine = readonly [name: string, value: string];

export function valuesOf(lines: readonly HeaderLine[], name: string): string[] {
  return lines.filter(([each]) => each === name).map(([, value]) => value);
}

/** All lines of the name as one value; undefined when there is none. */
export function joined(lines: readonly HeaderLine[], name: string): string | undefined {
  const values = valuesOf(lines, name);
  return values.length ? values.join(', ') : undefined;
}

/** The members of a comma-separated list without quoted strings, over all lines of the name. */
export function membersOf(lines: readonly HeaderLine[], name: string): string[] {
  return valuesOf(lines, name)
    .flatMap((value) => value.split(','))
    .map((member) => member.trim())
    .filter((member) => member !== '');
}
