/** Describes the responses on proxied paths. */

import { EVERY_RESPONSE, type HeaderMap, RELAYED, SESSION_CALL } from './headers.ts';
import {
  ANY_CONTENT,
  BODY_TOO_LARGE,
  BODY_TOO_SLOW,
  BYTES_OF_ANY_TYPE,
  type Content,
  NO_SESSION,
  ORIGIN_NOT_ALLOWED,
  OVERLOAD,
  ownError,
  ownOrRelayed,
  type Responses,
  SESSION_BUSY,
  UPSTREAM_FAILED,
  withoutContent,
} from './responses.ts';

const PLAYBACK_HEADERS = { ...EVERY_RESPONSE, ...RELAYED };
const PROXIED_HEADERS = { ...PLAYBACK_HEADERS, ...SESSION_CALL };

/** The gateway's own errors on proxied paths, for every method. */
const OWN_ERRORS = {
  400: ownError(
    'A header to be forwarded contains a control character, a GET or HEAD has a body, or the request has no valid Host.',
  ),
  401: NO_SESSION,
  403: ORIGIN_NOT_ALLOWED,
  404: ownError('The gateway does not relay this path.'),
  429: SESSION_BUSY,
  502: UPSTREAM_FAILED,
  503: OVERLOAD,
};
const OWN_ERRORS_WITH_BODY = {
  ...OWN_ERRORS,
  400: ownError(
    'A header to be forwarded contains a control character, the body is incomplete, or the request has no valid Host.',
  ),
  408: BODY_TOO_SLOW,
  413: BODY_TOO_LARGE,
};
const PLAYBACK_ERRORS = {
  ...OWN_ERRORS,
  401: ownError(
    'There is a query, or the id has other characters, so the request needs a session, and there is none.',
  ),
  429: ownError('There is a query, so it counts for the session, which has too many requests in flight.'),
};

function streamed(headers: HeaderMap, content: Content): Responses {
  return { '2XX': { description: 'The upstream’s response, streamed.', headers, content } };
}

function relayed(ownErrors: Responses, headers: HeaderMap): Responses {
  return {
    ...streamed(headers, ANY_CONTENT),
    ...ownOrRelayed(ownErrors, headers),
    default: { description: 'Any other status of the upstream.', headers, content: ANY_CONTENT },
  };
}

const proxiedResponses = relayed(OWN_ERRORS, PROXIED_HEADERS);
const RESPONSES = {
  Proxied: proxiedResponses,
  ProxiedHead: withoutContent(proxiedResponses),
  ProxiedWithBody: relayed(OWN_ERRORS_WITH_BODY, PROXIED_HEADERS),
  ProxiedAudio: streamed(PROXIED_HEADERS, BYTES_OF_ANY_TYPE),
  Playback: relayed(PLAYBACK_ERRORS, PLAYBACK_HEADERS),
  PlaybackAudio: streamed(PLAYBACK_HEADERS, BYTES_OF_ANY_TYPE),
};
type ResponsesName = keyof typeof RESPONSES;

/** All operations refer to these components, because each response has many headers. */
export const PROXY_RESPONSES: Responses = Object.fromEntries(
  Object.entries(RESPONSES).flatMap(([name, responses]) =>
    Object.entries(responses).map(([status, response]) => [name + status, response]),
  ),
);

/** @param names of responses with the same status, the last one counts */
export function referencesTo(...names: ResponsesName[]) {
  return Object.fromEntries(
    names.flatMap((name) =>
      Object.keys(RESPONSES[name]).map((status) => [
        status,
        { $ref: `#/components/responses/${name}${status}` },
      ]),
    ),
  );
}
