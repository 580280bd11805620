/** Describes the proxied paths below `/api/upstream/v1/` in the OpenAPI document. */

import { EVERY_RESPONSE, type HeaderMap, RELAYED, SESSION_CALL } from './headers.ts';
import { NEEDS_SESSION, type Operation } from './operation.ts';
import { named, PROXIED_HEADERS } from './parameters.ts';
import {
  ANY_CONTENT,
  BODY_TOO_LARGE,
  BODY_TOO_SLOW,
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
const PROXIED_RESPONSE_HEADERS = { ...PLAYBACK_HEADERS, ...SESSION_CALL };

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

function relayed(ownErrors: Responses, headers: HeaderMap): Responses {
  return {
    '2XX': { description: 'The upstream’s response, streamed.', headers, content: ANY_CONTENT },
    ...ownOrRelayed(ownErrors, headers),
    default: { description: 'Any other status of the upstream.', headers, content: ANY_CONTENT },
  };
}

const proxiedResponses = relayed(OWN_ERRORS, PROXIED_RESPONSE_HEADERS);
const RESPONSES = {
  Proxied: proxiedResponses,
  ProxiedHead: withoutContent(proxiedResponses),
  ProxiedWithBody: relayed(OWN_ERRORS_WITH_BODY, PROXIED_RESPONSE_HEADERS),
  Playback: relayed(PLAYBACK_ERRORS, PLAYBACK_HEADERS),
};

/** All methods refer to these components, because each response has many headers. */
export const PROXY_RESPONSES: Responses = Object.fromEntries(
  Object.entries(RESPONSES).flatMap(([name, responses]) =>
    Object.entries(responses).map(([status, response]) => [name + status, response]),
  ),
);

function referencesTo(name: keyof typeof RESPONSES) {
  return Object.fromEntries(
    Object.keys(RESPONSES[name]).map((status) => [
      status,
      { $ref: `#/components/responses/${name}${status}` },
    ]),
  );
}

function proxied(method: Operation['method'], name: keyof typeof RESPONSES): Operation {
  return {
    method,
    path: '/api/upstream/v1/{rest}',
    detail: {
      operationId: `proxied${method[0]}${method.slice(1).toLowerCase()}`,
      summary: `${method} a path of the upstream`,
      description:
        'Relayed to the upstream’s `/v1/` with the session’s access token; the response is streamed.',
      security: NEEDS_SESSION,
      parameters: [...named('rest'), ...PROXIED_HEADERS],
      ...(name === 'ProxiedWithBody'
        ? { requestBody: { description: 'Up to 2 MB.', content: ANY_CONTENT } }
        : {}),
      responses: referencesTo(name),
    },
  };
}

function playback(operationId: string, summary: string, path: string): Operation {
  return {
    method: 'GET',
    path: `/api/upstream/v1/music/public/{creation_id}${path}`,
    detail: {
      operationId,
      summary,
      description:
        'Relayed without credentials, unless there is a query: the upstream decides whether the creation is public. Any other method is proxied like other paths.',
      security: [],
      parameters: [...named('creation_id'), ...PROXIED_HEADERS],
      responses: referencesTo('Playback'),
    },
  };
}

export const PROXY_OPERATIONS = [
  playback('publicCreation', 'A public creation', ''),
  playback('publicContent', 'The audio of a public creation', '/content'),
  proxied('GET', 'Proxied'),
  proxied('HEAD', 'ProxiedHead'),
  proxied('POST', 'ProxiedWithBody'),
  proxied('PUT', 'ProxiedWithBody'),
  proxied('PATCH', 'ProxiedWithBody'),
  proxied('DELETE', 'ProxiedWithBody'),
];
