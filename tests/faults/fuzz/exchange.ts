/** Sends one request to the gateway in its pieces, and waits for what comes back. */

import { type ParsedResponse, parseResponses, type RawConnection } from '../../support/raw-http.ts';
import { PLACEHOLDER } from './choices.ts';
import type { FuzzRequest } from './grammar.ts';

/** With a marker in the place of the placeholder. */
export interface SentRequest extends FuzzRequest {
  readonly marker: string;
}

export interface Exchange {
  readonly responses: readonly ParsedResponse[];
  /** What followed the last complete response. */
  readonly rest: string;
  readonly end: 'responded' | 'closed' | 'silent';
}

/** A complete request must get its response within this. */
const RESPONSE_MS = 20_000;
/** Nobody knows whether the gateway waits for the rest of an incomplete one. */
const SILENCE_MS = 60;
/** For a second response, to what may have become two requests. */
const AFTERMATH_MS = 3;

export function marked(request: FuzzRequest, marker: string): SentRequest {
  return { ...request, marker, bytes: request.bytes.replaceAll(PLACEHOLDER, marker) };
}

export async function exchange(connection: RawConnection, request: SentRequest): Promise<Exchange> {
  connection.received = '';
  await connection.send(request.bytes, request.cuts);
  const isHead = request.bytes.startsWith('HEAD ');
  const deadline = performance.now() + (request.isFramed ? RESPONSE_MS : SILENCE_MS);
  for (;;) {
    const parsed = parseResponses(connection.received, isHead);
    if (connection.isClosed) return { ...parsed, end: parsed.responses.length ? 'responded' : 'closed' };
    if (parsed.responses.length) {
      if (!request.isFramed) await Bun.sleep(AFTERMATH_MS);
      return { ...parseResponses(connection.received, isHead), end: 'responded' };
    }
    const leftMs = deadline - performance.now();
    if (leftMs <= 0) return { ...parsed, end: 'silent' };
    await connection.changed(leftMs);
  }
}

/** Whether the next request may be sent over the connection. */
export function isReusable(connection: RawConnection, { isFramed }: FuzzRequest, done: Exchange): boolean {
  const [response] = done.responses;
  if (!isFramed || done.end !== 'responded' || connection.isClosed || done.rest !== '' || !response)
    return false;
  // A response of Bun's own has no headers, and ends the connection.
  const isClosing = response.headers.some(([name, value]) => name === 'connection' && /close/i.test(value));
  return response.headers.length > 1 && !isClosing;
}
