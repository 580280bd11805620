/** Finds misspelled settings. */

/**
 * Returns a warning for each name that is not a setting but resembles one, such as `ALLOWED_ORIGIN`. OpenTelemetry has
 * many variables that resemble each other, so they are left out.
 */
export function misspellingWarnings(
  environment: Readonly<Record<string, string | undefined>>,
  known: ReadonlySet<string>,
): string[] {
  const candidates = [...known];
  return Object.keys(environment)
    .filter((name) => environment[name] !== undefined && !known.has(name) && !name.startsWith('OTEL_'))
    .flatMap((name) => {
      const upperCase = name.toUpperCase();
      const meant = candidates.find((candidate) => resembles(upperCase, candidate));
      return meant ? [`${name} is not a setting of the gateway; did you mean ${meant}?`] : [];
    });
}

/** Allows one typo for every five letters, so that HOME is not taken for HOST. */
function resembles(name: string, known: string): boolean {
  const allowed = Math.floor(known.length / 5);
  if (Math.abs(name.length - known.length) > allowed) return false;
  // Cheap, and true of few names: computing the distance to all of them would slow down the start.
  return sharesPiece(name, known, allowed + 1) && editDistance(name, known) <= allowed;
}

/** Whether the name contains one of so many equal pieces of the other. A typo changes only one of them. */
function sharesPiece(name: string, known: string, pieces: number): boolean {
  const length = Math.floor(known.length / pieces);
  for (let start = 0; start + length <= known.length; start += length) {
    if (name.includes(known.slice(start, start + length))) return true;
  }
  return false;
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
