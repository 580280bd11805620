/** Describes the responses that several operations share. */

import { Type } from '@sinclair/typebox';
import { SessionState } from '../routes/schemas.ts';
import { type HeaderMap, OWN_ERROR, RETRY_LATER } from './headers.ts';

export const SCHEMAS = {
  Error: Type.Object(
    { error: Type.Object({ message: Type.String({ minLength: 1 }) }, { additionalProperties: false }) },
    {
      additionalProperties: false,
      description: 'An error of the gateway itself. The text is for people; programs should use the status.',
    },
  ),
  SessionState,
  Done: Type.Object({ ok: Type.Literal(true) }, { additionalProperties: false }),
  Health: Type.Object(
    { service: Type.String(), status: Type.Literal('ok') },
    { additionalProperties: false },
  ),
  UpstreamJson: Type.Union(
    [
      Type.Array(Type.Any()),
      Type.Object({}, { additionalProperties: true }),
      Type.String(),
      Type.Number(),
      Type.Boolean(),
      Type.Null(),
    ],
    { description: 'The upstream’s own JSON, as it sent it: any value, often an object with `data`.' },
  ),
};

/** OpenAPI 3.1 would leave out the type, but generators make `unknown` of that. */
const BYTES = { type: 'string', format: 'binary' };

export type Content = Readonly<Record<string, { readonly schema: object }>>;

interface Response {
  readonly description: string;
  readonly headers: HeaderMap;
  readonly content?: Content;
}
export type Responses = Readonly<Record<string, Response>>;

function reference(schema: keyof typeof SCHEMAS) {
  return { $ref: `#/components/schemas/${schema}` };
}

export function json(schema: keyof typeof SCHEMAS): Content {
  return { 'application/json': { schema: reference(schema) } };
}

/** What the upstream sends in this place, or instead the gateway. */
export function jsonOrUpstreams(schema: keyof typeof SCHEMAS): Content {
  return { 'application/json': { schema: { anyOf: [reference(schema), reference('UpstreamJson')] } } };
}

export const BYTES_OF_ANY_TYPE: Content = { '*/*': { schema: BYTES } };

/** A body that the gateway does not inspect. */
export const ANY_CONTENT: Content = { ...json('UpstreamJson'), ...BYTES_OF_ANY_TYPE };

/** An error response of the gateway itself. */
export function ownError(description: string, headers: HeaderMap = {}): Response {
  return { description, headers: { ...OWN_ERROR, ...headers }, content: json('Error') };
}

export const NO_HOST = ownError('The request has no valid Host.');
export const ORIGIN_NOT_ALLOWED = ownError('`Origin` is absent, or is not one of the allowed origins.');
export const NO_SESSION = ownError(
  'Neither session cookie is present, or one of them is sent twice; or the session has ended, and the cookies are cleared.',
  RETRY_LATER,
);
export const BODY_TOO_SLOW = ownError(
  'The request body arrived too slowly: it may take 25 seconds, and one more for each 16 KB. The connection ends with the response.',
);
export const BODY_TOO_LARGE = ownError('The request body is larger than 2 MB.');
export const UPSTREAM_FAILED = ownError(
  'The upstream cannot be reached, is late, or sends an invalid response or tokens that do not fit in a cookie.',
  RETRY_LATER,
);
export const SESSION_BUSY = ownError(
  'The session has too many requests in flight, and this one was not forwarded.',
  RETRY_LATER,
);
export const OVERLOAD = ownError('The gateway has too many requests in flight.', RETRY_LATER);

export function withHeaders(responses: Responses, headers: HeaderMap): Responses {
  return Object.fromEntries(
    Object.entries(responses).map(([status, response]) => [
      status,
      { ...response, headers: { ...headers, ...response.headers } },
    ]),
  );
}

/** The same responses for HEAD. @see RFC 9110 section 9.3.2 */
export function withoutContent(responses: Responses): Responses {
  return Object.fromEntries(
    Object.entries(responses).map(([status, { description, headers }]) => [status, { description, headers }]),
  );
}

/**
 * The gateway's own errors, where the upstream's response with the same status may be relayed instead.
 *
 * @param relayed the headers of relayed responses
 */
export function ownOrRelayed(own: Responses, relayed: HeaderMap): Responses {
  return Object.fromEntries(
    Object.entries(own).map(([status, { description, headers }]) => [
      status,
      {
        description: `${description} Or the upstream responded with ${status}, which is relayed.`,
        headers: { ...headers, ...relayed },
        content: { ...ANY_CONTENT, ...jsonOrUpstreams('Error') },
      },
    ]),
  );
}
