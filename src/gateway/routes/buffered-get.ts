/** Implements what session check and models share: a GET whose response is relayed from memory. */

import type { Admission } from '../http/admission/admission.ts';
import type { SessionPlace } from '../http/admission/session-limit.ts';
import { completeResponse, type Responding } from '../http/complete-response.ts';
import { GatewayError } from '../http/errors.ts';
import { limitHeaders } from '../http/forwarded-headers.ts';
import { messages } from '../http/messages.ts';
import { proxyStatus } from '../http/proxy-status.ts';
import { CONTENT_SECURITY_POLICY } from '../http/relayed-headers.ts';
import type { Session } from '../session/session.ts';
import { STREAMED_BODY_BYTES } from '../settings/memory.ts';
import type { Settings } from '../settings/settings.ts';
import { traceOf } from '../trace/request-trace.ts';
import type { UpstreamCall } from '../upstream/fetch-upstream.ts';
import type { UpstreamResponse } from '../upstream/upstream-response.ts';

interface BufferedGetParts {
  readonly settings: Settings;
  readonly admission: Admission;
  readonly session: Session;
  readonly request: Request;
}

/** A large body occupies as many streamed-body places as its size requires, until it has been sent. */
export function bufferedGet<Result>(
  { settings, admission, session, request }: BufferedGetParts,
  name: 'me' | 'models',
  respond: (upstream: UpstreamResponse) => Result,
): Promise<Result> {
  let places = 0;
  const callOf = (place: SessionPlace): UpstreamCall => ({
    name,
    trace: traceOf(request),
    method: 'GET',
    url: `${settings.upstreamUrl}/v1/${name}`,
    headers: {},
    timeoutMs: settings.timeouts.readMs,
    bodyMode: 'buffered',
    admitLarge(bytes) {
      for (; places * STREAMED_BODY_BYTES < bytes; places++) {
        admission.refuseStreaming(place);
        admission.stream(place);
      }
    },
    signal: request.signal,
  });
  return session.during(admission.reads, (place) => session.fetch(callOf(place)).then(respond));
}

/** The encodings that Bun decodes, and `identity`. Bun does not decode combinations such as `gzip, br`. */
const DECODED = /^(?:gzip|x-gzip|deflate|br|zstd|identity)?$/i;

/**
 * Relays the upstream's status, body, content type, `Retry-After` and rate limits, and none of its other headers.
 *
 * @throws GatewayError 502 when Bun cannot decode the body's encoding
 */
export function bufferedResponse({ body, status, headers }: UpstreamResponse, context: Responding): Response {
  const coding = headers.get('content-encoding');
  if (coding !== null && !DECODED.test(coding)) {
    const unreadable = proxyStatus('http_response_content_coding');
    throw new GatewayError(502, messages.upstreamInvalid, { headers: unreadable });
  }
  const sent = limitHeaders(headers);
  const contentType = headers.get('content-type');
  if (contentType !== null) sent['content-type'] = contentType;
  sent['cache-control'] = 'no-store';
  sent['content-security-policy'] = CONTENT_SECURITY_POLICY;
  return completeResponse(context, body, status, sent);
}
