/** Header lines: host, origin, and everything a client may or should not send. */

import { ORIGIN } from '../../../support/world.ts';
import type { Random } from '../random.ts';
import {
  CONNECTION_OPTIONS,
  HOSTS,
  ODD_LINES,
  ODD_ORIGIN_LINES,
  ODD_ORIGINS,
  RELAYED_LINES,
} from './odd-lines.ts';
import { cookieLines } from './session-cookies.ts';

export interface HeaderWishes {
  readonly marker: string;
  readonly oddity: number;
  /** Never the allowed origin. */
  readonly isForbidden: boolean;
  /** A host that may be no host at all. */
  readonly hasOddHost: boolean;
}

/** Every line but the ones that say where the body ends. */
export function headerLines(
  random: Random,
  { marker, oddity, isForbidden, hasOddHost }: HeaderWishes,
): string[] {
  const lines = [`Host: ${hasOddHost ? oddHost(random) : 'gateway.test'}`];
  if (random.chance(oddity / 20)) lines.pop();
  lines.push(...originLines(random, isForbidden || random.chance(oddity / 2)));
  lines.push(...cookieLines(random, marker, oddity));
  if (random.chance(0.3)) lines.push(`Idempotency-Key: ${marker}`);
  while (random.chance(0.3)) lines.push(random.pick(RELAYED_LINES));
  while (random.chance(oddity)) lines.push(random.pick(ODD_LINES));
  if (random.chance(oddity)) lines.push(connectionLine(random, lines));
  if (random.chance(oddity / 50)) lines.push(...manyLines(random));
  if (random.chance(oddity / 50)) lines.push(`X-Long: ${'x'.repeat(random.pick([8000, 17_000, 70_000]))}`);
  return random.chance(oddity) ? shuffled(random, lines) : lines;
}

/** Names some of what is there, what a gateway needs itself, and what is not there. */
function connectionLine(random: Random, lines: readonly string[]): string {
  // With a name of its own, because a request may have no header lines.
  const present = ['Host', ...lines.map((line) => line.split(':', 1)[0] ?? '')];
  const names = Array.from({ length: random.between(1, 4) }, () =>
    random.make(
      () => random.pick(present),
      () => random.pick(present).toUpperCase(),
      () => random.pick(CONNECTION_OPTIONS),
    ),
  );
  return `${random.pick(['Connection', 'connection', 'CONNECTION'])}: ${names.join(random.pick([', ', ',', ' ,\t']))}`;
}

/** Often one of which no address can be made: then the gateway does not see an absolute URL. */
function oddHost(random: Random): string {
  return random.chance(0.4) ? random.pick(['', 'a b', '/']) : random.pick(HOSTS);
}

function originLines(random: Random, isOdd: boolean): string[] {
  if (!isOdd)
    return [
      `${random.pick(['Origin', 'Origin', 'origin', 'ORIGIN'])}:${random.pick([' ', ' ', '', '\t '])}${ORIGIN}`,
    ];
  return random.make<string[]>(
    () => [],
    () => [`Origin: ${random.pick(ODD_ORIGINS)}`],
    () => [`Origin: ${random.pick(ODD_ORIGINS)}`],
    () => [random.pick(ODD_ORIGIN_LINES)],
  );
}

function manyLines(random: Random): string[] {
  return Array.from({ length: random.pick([60, 150, 300, 2000]) }, (_, index) => `X-${index}: ${index}`);
}

function shuffled(random: Random, lines: readonly string[]): string[] {
  const rest = [...lines];
  return lines.flatMap(() => rest.splice(random.below(rest.length), 1));
}
