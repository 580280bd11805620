/** What session check and models have in common: a GET whose answer is passed on whole. */

import type { Settings } from '../settings.ts';
import type { UpstreamCall } from '../upstream/fetch-upstream.ts';

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
export function wholeAnswer({ body, status, headers }: Response): Response {
  const contentType = headers.get('content-type');
  return new Response(body, {
    status,
    headers: {
      'cache-control': 'no-store',
      ...(contentType === null ? {} : { 'content-type': contentType }),
    },
  });
}
