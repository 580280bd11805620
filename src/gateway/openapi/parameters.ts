/**
 * Describes request headers and path parameters in the OpenAPI document. Headers that only a browser or a proxy sets are
 * no parameters, because generated clients would ask their callers for them.
 */

import { Type } from '@sinclair/typebox';

const text = Type.String();

function header(description: string) {
  return { in: 'header', description, schema: text };
}

const parameters = {
  'Accept-Language': header('The language of the gateway’s own error texts: English or Swahili (`sw`).'),
  'Cache-Control': header('Forwarded unchanged.'),
  'Content-Encoding': header('Forwarded unchanged, with the encoded body.'),
  'Idempotency-Key': header('Forwarded unchanged; the same for every attempt at the same generation.'),
  'If-Match': header('Forwarded unchanged.'),
  'If-Modified-Since': header('Forwarded unchanged.'),
  'If-None-Match': header('Forwarded unchanged.'),
  'If-Range': header('Forwarded unchanged.'),
  'If-Unmodified-Since': header('Forwarded unchanged.'),
  Pragma: header('Forwarded unchanged.'),
  Range: header('Forwarded unchanged.'),
  traceparent: header('Forwarded unchanged when it is valid; otherwise the upstream gets a new one.'),
  tracestate: header('Forwarded unchanged with a valid `traceparent`.'),
  'X-Request-Id': header(
    'An id for the request: up to 64 letters, digits and `-._~`. Without a valid one, the gateway makes an id.',
  ),
  rest: {
    in: 'path',
    required: true,
    description:
      'The rest of the upstream’s path with its slashes, and a query if there is one. Dot segments, encoded slashes, control characters, segments that begin with `;` and the upstream’s `auth` endpoints are refused with 404.',
    schema: Type.String({ minLength: 1 }),
    example: 'music/creations',
  },
  creation_id: {
    in: 'path',
    required: true,
    description: 'The id of a creation. That of a public one has only letters, digits and `-._~`.',
    schema: Type.String({ minLength: 1 }),
  },
};
type ParameterName = keyof typeof parameters;

/** Under these names the document's components list the parameters. */
export const PARAMETERS = Object.fromEntries(
  Object.entries(parameters).map(([name, parameter]) => [name, { name, ...parameter }]),
);

export function named(...names: ParameterName[]) {
  return names.map((name) => ({ $ref: `#/components/parameters/${name}` }));
}

export const TRACE_HEADERS = named('traceparent', 'tracestate', 'X-Request-Id');

/** The request headers that the gateway's own routes read. */
export const OWN_ROUTE_HEADERS = [...named('Accept-Language'), ...TRACE_HEADERS];

export const PROXIED_HEADERS = [
  ...OWN_ROUTE_HEADERS,
  ...named(
    'Cache-Control',
    'Content-Encoding',
    'Idempotency-Key',
    'If-Match',
    'If-Modified-Since',
    'If-None-Match',
    'If-Range',
    'If-Unmodified-Since',
    'Pragma',
    'Range',
  ),
];
