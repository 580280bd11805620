/** What session check and models have in common: a GET whose answer is passed on whole. */

import type { Context } from 'elysia';
import { nativeResponse } from '../http/native-response.ts';
import type { Settings } from '../settings.ts';
import type { UpstreamCall } from '../upstream/fetch-upstream.ts';
import type { UpstreamAnswer } from '../upstream/upstream-answer.ts';

export function wholeGet(
  { upstreamUrl, timeouts }: Settings,
  path: string,
  signal: AbortSignal,
): UpstreamCall {
  return {
    method: 'GET',
    url: upstreamUrl + path,
    headers: {},
    timeoutMs: timeouts.readMs,
    answer: 'whole',
    signal,
  };
}

/** The upstream's status, body and content type, and nothing else of it. */
export function wholeAnswer({ body, status, headers }: UpstreamAnswer, set: Context['set']): Response {
  const contentType = headers.get('content-type');
  const noStore = { 'cache-control': 'no-store' };
  return nativeResponse(
    set,
    body,
    status,
    contentType === null ? noStore : { ...noStore, 'content-type': contentType },
  );
}
