/** Describes request headers and path parameters in the OpenAPI document. */

import { Type } from '@sinclair/typebox';

const text = Type.String();

function header(description: string) {
  return { in: 'header', description, schema: text };
}

const parameters = {
  Origin: {
    ...header('Exactly one of the allowed origins. Browsers set it themselves.'),
    required: true,
  },
  'Accept-Encoding': header('Forwarded unchanged; with a `Range` the upstream gets `identity`.'),
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
  Via: header(
    'From proxies in front of the gateway. It is forwarded, if it is ASCII of at most 1 KB, with `1.1 music-gateway` added.',
  ),
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
    description: 'The id of a public creation.',
    schema: Type.String({ pattern: '^[A-Za-z0-9._~-]+$' }),
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
export const OWN_ROUTE_HEADERS = [...named('Origin', 'Accept-Language'), ...TRACE_HEADERS];

export const PROXIED_HEADERS = [
  ...OWN_ROUTE_HEADERS,
  ...named(
    'Accept-Encoding',
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
    'Via',
  ),
];
