/** `Connection` lines, which end what they name at this hop. */

import fc, { type Arbitrary } from 'fast-check';
import { maybe, pick, words } from './choices.ts';

const SPELLINGS: readonly ((name: string) => string)[] = [
  (name) => name,
  (name) => name.toLowerCase(),
  (name) => name.toUpperCase(),
  (name) => ` ${name}\t`,
];

/** Names some of the headers that are there, and some of the options. */
export function connection(options: readonly string[]): Arbitrary<(lines: readonly string[]) => string> {
  const named = fc.tuple(fc.nat(99), pick(SPELLINGS), maybe(0.35, pick(options)));
  const header = pick(words('Connection connection CONNECTION'));
  return fc
    .tuple(header, fc.array(named, { minLength: 1, maxLength: 4 }), pick([', ', ',', ' ,\t']))
    .map(([header, members, separator]) => (lines) => {
      // There may be no lines, so `Host` is always among the names.
      const names = [...lines.map((line) => line.split(':', 1)[0] ?? ''), 'Host'];
      const written = members.map(([at, spell, [option]]) => option ?? spell(names[at % names.length] ?? ''));
      return `${header}: ${written.join(separator)}`;
    });
}
