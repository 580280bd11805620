/** Finds variables that look like a setting and are none: a misspelled COOKIE_KEYS would leave the cookies unsealed. */

import { closestMatch } from 'leven';
import type { Environment } from './environment-reader.ts';

/** A name may differ from a setting by one letter in so many, and by three at most: HOME is no slip for HOST. */
const LETTERS_PER_SLIP = 4;
const MOST_SLIPS = 3;

/** Never quotes a value, which may be a secret. */
export function misspelledNames(environment: Environment, settings: ReadonlySet<string>): string[] {
  const warnings: string[] = [];
  for (const [name, value] of Object.entries(environment)) {
    if (settings.has(name) || !value?.trim()) continue;
    const maxDistance = Math.min(MOST_SLIPS, Math.floor(name.length / LETTERS_PER_SLIP));
    const meant = closestMatch(name.toUpperCase(), [...settings], { maxDistance });
    if (meant !== undefined) warnings.push(`${name} is not a setting: is ${meant} meant?`);
  }
  return warnings;
}
