/** Makes the request of a seed and an index: alone it is the same as in a run. */

import { type FuzzRequest, hasAllowedOrigin, mentionsAllowedOrigin } from './fuzz-request.ts';
import { type Wishes, writeRequest } from './grammar/request.ts';
import { markerOf } from './marker.ts';
import { mutate } from './mutations.ts';
import { Random } from './random.ts';

/** So many requests are under way together; each batch is looked at as a whole when it has ended. */
export const BATCH = 500;

/** In every third batch no request has an allowed origin, so that not one call may come of it. */
export function isForbiddenBatch(index: number): boolean {
  return Math.floor(index / BATCH) % 3 === 2;
}

export function requestAt(seed: number, index: number): FuzzRequest {
  const random = new Random(seed, index);
  const marker = markerOf(seed, index);
  const isForbidden = isForbiddenBatch(index);
  const kind = random.chance(0.35) ? 'mutated' : 'grammar';
  for (;;) {
    const { bytes, isFramed, mayPass } =
      kind === 'mutated' ? mutated(random, { marker, isForbidden }) : fromGrammar();
    if (isForbidden && mayPass) continue;
    const cuts = cutsOf(random, bytes.length);
    return { index, marker, kind, bytes, isFramed, mayPass, cuts };
  }

  function fromGrammar() {
    const oddity = random.pick([0, 0.1, 0.1, 0.25, 0.25, 0.5]);
    const { bytes, isFramed } = writeRequest(random, { marker, oddity, isForbidden });
    return { bytes, isFramed, mayPass: hasAllowedOrigin(bytes) };
  }
}

function mutated(random: Random, { marker, isForbidden }: Omit<Wishes, 'oddity'>) {
  const { bytes: first } = writeRequest(random, { marker, oddity: 0, isForbidden });
  const { bytes: second } = writeRequest(random, { marker, oddity: 0.1, isForbidden });
  let bytes = mutate(random, first, second);
  if (random.chance(0.1)) bytes = bytes.slice(0, random.below(bytes.length + 1));
  return { bytes, isFramed: false, mayPass: mentionsAllowedOrigin(bytes) };
}

function cutsOf(random: Random, length: number): number[] {
  const count = random.chance(0.7) ? 0 : random.pick([1, 1, 2, 3, 8, 40]);
  return Array.from({ length: count }, () => random.below(length + 1)).toSorted((a, b) => a - b);
}
