/** What session check and models have in common: a GET whose answer is passed on whole. */

import { type Admission, STREAMED_SHARE } from '../http/admission/admission.ts';
import type { SessionPlace } from '../http/admission/session-limit.ts';
import { nativeResponse, type Responding } from '../http/native-response.ts';
import { traceOf } from '../http/request-trace.ts';
import type { Session } from '../session/session.ts';
import { STREAMED_BODY_BYTES } from '../settings/memory.ts';
import type { Settings } from '../settings.ts';
import type { UpstreamCall } from '../upstream/fetch-upstream.ts';
import type { UpstreamAnswer } from '../upstream/upstream-answer.ts';

interface WholeGetParts {
  readonly settings: Settings;
  readonly admission: Admission;
  readonly session: Session;
  readonly request: Request;
}

/** A large body has places among the streamed ones, as many as its size is worth, until it has been sent. */
export function wholeGet<Result>(
  { settings, admission, session, request }: WholeGetParts,
  name: 'me' | 'models',
  respond: (upstream: UpstreamAnswer) => Result,
): Promise<Result> {
  const { reads, streamedBodies } = admission;
  let places = 0;
  const callOf = (place: SessionPlace): UpstreamCall => ({
    name,
    trace: traceOf(request),
    method: 'GET',
    url: `${settings.upstreamUrl}/v1/${name}`,
    headers: {},
    timeoutMs: settings.timeouts.readMs,
    answer: 'whole',
    admitLarge(bytes) {
      for (; places * STREAMED_BODY_BYTES < bytes; places++) {
        place.refuseIfStreaming();
        streamedBodies.refuseIfFull(STREAMED_SHARE.proxied);
        place.stream();
        place.add(streamedBodies.take());
      }
    },
    signal: request.signal,
  });
  return session.during(reads, (place) => session.fetch(callOf(place)).then(respond));
}

/** The upstream's status, body and content type, and nothing else of it. */
export function wholeAnswer({ body, status, headers }: UpstreamAnswer, context: Responding): Response {
  const contentType = headers.get('content-type');
  const noStore = { 'cache-control': 'no-store' };
  return nativeResponse(
    context,
    body,
    status,
    contentType === null ? noStore : { ...noStore, 'content-type': contentType },
  );
}
