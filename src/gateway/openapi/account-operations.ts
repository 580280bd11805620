/** Describes health, sign-in, session check and sign-out in the OpenAPI document. */

import { SignInRequest } from '../routes/schemas.ts';
import { EVERY_RESPONSE, NO_STORE, PROXY_STATUS, RETRY_LATER, SESSION_COOKIES } from './headers.ts';
import { type Operation, requiredBody, TAKES_SESSION, withHead } from './operation.ts';
import { OWN_ROUTE_HEADERS, TRACE_HEADERS } from './parameters.ts';
import { relayedBuffered } from './relayed-buffered.ts';
import {
  BODY_TOO_LARGE,
  BODY_TOO_SLOW,
  json,
  jsonOrUpstreams,
  NO_HOST,
  ORIGIN_NOT_ALLOWED,
  ownError,
  type Responses,
} from './responses.ts';

const health: Operation<Responses> = {
  method: 'GET',
  path: '/api/health',
  detail: {
    operationId: 'health',
    summary: 'Whether the gateway is up',
    description: 'Needs no `Origin`.',
    security: [],
    parameters: TRACE_HEADERS,
    responses: { 200: { description: 'It is.', headers: EVERY_RESPONSE, content: json('Health') } },
  },
};

const signIn: Operation = {
  method: 'POST',
  path: '/api/auth/idp',
  detail: {
    operationId: 'signIn',
    summary: 'Sign in with an authorization code',
    description:
      'Exchanges the code and its verifier at the identity provider for an identity token, and that at the upstream for a session in two cookies. No body ever contains a token. When one of the two servers refuses, the response has its status: often 400, for an expired code.',
    security: [],
    parameters: OWN_ROUTE_HEADERS,
    responses: {
      200: {
        description: 'Signed in.',
        headers: { ...EVERY_RESPONSE, ...NO_STORE, ...SESSION_COOKIES },
        content: json('Done'),
      },
      400: ownError(
        'The code or the verifier is invalid, the body is malformed or incomplete, or the request has no valid Host.',
      ),
      401: ownError('The identity provider refused the code or the gateway, or issued no token.'),
      403: ownError(
        '`Origin` is absent, is not one of the allowed origins, or `IDP_REDIRECT_URI` is a list without a redirect URI of that origin. Or the identity provider or the upstream refused the sign-in with 403.',
      ),
      408: BODY_TOO_SLOW,
      413: BODY_TOO_LARGE,
      502: ownError(
        'The identity provider or the upstream cannot be reached, is late, or sends an invalid response or tokens that do not fit in a cookie.',
        PROXY_STATUS,
      ),
      503: ownError(
        'The gateway has too many requests in flight. Or the identity provider or the upstream refused the sign-in with 503.',
        RETRY_LATER,
      ),
      default: ownError(
        'Any other status with which the identity provider or the upstream refused the sign-in.',
      ),
    },
    requestBody: requiredBody(SignInRequest, 'application/json', 'application/x-www-form-urlencoded'),
  },
};

const sessionCheck: Operation<Responses> = {
  method: 'GET',
  path: '/api/auth/session',
  detail: {
    operationId: 'checkSession',
    summary: 'Who is signed in',
    security: TAKES_SESSION,
    parameters: OWN_ROUTE_HEADERS,
    responses: relayedBuffered({
      description:
        'The upstream’s profile, unchanged; `{"authenticated":true}` when it has none, and `{"authenticated":false}` without a session, also when a session cookie is sent twice.',
      json: jsonOrUpstreams('SessionState'),
    }),
  },
};

const signOut: Operation = {
  method: 'POST',
  path: '/api/auth/logout',
  detail: {
    operationId: 'signOut',
    summary: 'Sign out',
    description:
      'The gateway signs out at the upstream when both cookies are present, and with `SIGN_OUT_REVOKES` also when only the refresh cookie is present or the access token has expired. A failure of the upstream is ignored: the cookies are cleared in any case.',
    security: TAKES_SESSION,
    parameters: OWN_ROUTE_HEADERS,
    responses: {
      200: {
        description: 'Signed out here.',
        headers: { ...EVERY_RESPONSE, ...NO_STORE, ...SESSION_COOKIES },
        content: json('Done'),
      },
      400: NO_HOST,
      403: ORIGIN_NOT_ALLOWED,
    },
  },
};

export const ACCOUNT_OPERATIONS = [...withHead(health), signIn, ...withHead(sessionCheck), signOut];
