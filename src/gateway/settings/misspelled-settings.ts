/** Finds misspelled settings. */

/** Returns a warning for each name that is not a setting but resembles one, such as `ALLOWED_ORIGIN`. */
export function misspellingWarnings(
  environment: Readonly<Record<string, string | undefined>>,
  known: ReadonlySet<string>,
): string[] {
  return Object.keys(environment)
    .filter((name) => environment[name] !== undefined && !known.has(name))
    .flatMap((name) => {
      const meant = [...known].find((candidate) => resembles(name.toUpperCase(), candidate));
      return meant ? [`${name} is not a setting of the gateway; did you mean ${meant}?`] : [];
    });
}

/** Allows one typo for every five letters, so that HOME is not taken for HOST. */
function resembles(name: string, known: string): boolean {
  const allowed = Math.floor(known.length / 5);
  return Math.abs(name.length - known.length) <= allowed && editDistance(name, known) <= allowed;
}

/** The Levenshtein distance, computed row by row. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next[j] = Math.min(substitution, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1);
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
