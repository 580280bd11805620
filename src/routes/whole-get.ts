/** What session check and models have in common: a GET whose answer is passed on whole. */

import type { Context } from 'elysia';
import { nativeResponse } from '../http/native-response.ts';
import { traceOf } from '../http/request-trace.ts';
import type { Settings } from '../settings.ts';
import type { UpstreamCall } from '../upstream/fetch-upstream.ts';
import type { UpstreamAnswer } from '../upstream/upstream-answer.ts';

export function wholeGet(
  { upstreamUrl, timeouts }: Settings,
  name: 'me' | 'models',
  request: Request,
): UpstreamCall {
  return {
    name,
    trace: traceOf(request),
    method: 'GET',
    url: `${upstreamUrl}/v1/${name}`,
    headers: {},
    timeoutMs: timeouts.readMs,
    answer: 'whole',
    signal: request.signal,
  };
}

/** The upstream's status, body and content type, and nothing else of it. */
export function wholeAnswer(
  { body, status, headers }: UpstreamAnswer,
  context: Pick<Context, 'request' | 'set'>,
): Response {
  const contentType = headers.get('content-type');
  const noStore = { 'cache-control': 'no-store' };
  return nativeResponse(
    context,
    body,
    status,
    contentType === null ? noStore : { ...noStore, 'content-type': contentType },
  );
}
