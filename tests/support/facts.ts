/** Facts that tests write to a store, and room for them. */

import { Ledger } from '../../src/gateway/admission/ledger.ts';
import type { Fact } from '../../src/gateway/refresh/store.ts';

export const LEASE: Fact = { kind: 'leased', detail: 'forged' };
export const RENEWAL: Fact = { kind: 'renewed', detail: 'x' };
export const UNREACHABLE: Fact = { kind: 'unreachable', detail: '' };
export const REJECTED: Fact = { kind: 'rejected', detail: '' };
export const ENDED: Fact = { kind: 'ended', detail: '0' };
/** A sign-out with a token that may be made up. */
export const ENDED_BY_ANYBODY: Fact = { kind: 'ended', detail: '' };

/** A ledger in which no test runs out of memory. */
export function newLedger(): Ledger {
  return new Ledger(1024 ** 3);
}
