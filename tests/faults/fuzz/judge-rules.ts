/** Judges responses and calls by the rules of the proxy, as far as the request can be read in one way only. */

import { ORIGIN } from '../../support/world.ts';
import type { Answer } from './answer-reader.ts';
import type { Call } from './call-reader.ts';
import type { FuzzRequest } from './fuzz-request.ts';
import { valuesOf } from './header-lines.ts';
import { isBare } from './judge-answer.ts';
import { problemWithForwarding } from './judge-forwarding.ts';
import { problemWithLeaks } from './judge-leaks.ts';
import { problemWithRefusal } from './judge-refusal.ts';
import { problemWithRelay, type Transaction } from './judge-relay.ts';
import { readRequest } from './request-reader.ts';

export interface Evidence {
  /** All that the request has caused, in their order. */
  readonly transactions: readonly Transaction[];
  readonly upstreamHost: string;
  /** Whether the request was sent once: only then the last call belongs to the response. */
  readonly wasSentOnce: boolean;
}

export function problemWithCause(call: Call, owner: FuzzRequest | undefined): string | undefined {
  const read = owner && readRequest(owner);
  return read && problemWithForwarding(call, read);
}

export function problemWithResponses(
  request: FuzzRequest,
  responses: readonly Answer[],
  { transactions, upstreamHost, wasSentOnce }: Evidence,
): string | undefined {
  const ours = responses.filter((response) => !isBare(response));
  for (const response of ours) {
    const leak = problemWithLeaks(response, upstreamHost, transactions);
    if (leak !== undefined) return leak;
  }
  const [first] = ours;
  const read = wasSentOnce ? readRequest(request) : undefined;
  if (!first || !read || valuesOf(read.headers, 'origin').join() !== ORIGIN) return undefined;
  return problemWithRefusal(first, read) ?? problemWithRelay(first, read, transactions);
}
