/** Describes the model catalogue and generation in the OpenAPI document. */

import { GenerationRequest } from '../routes/schemas.ts';
import {
  ENCODING,
  EVERY_RESPONSE,
  GENERATION,
  LIMITS,
  NO_STORE,
  PROXY_STATUS,
  RETRY_LATER,
  SESSION_CALL,
} from './headers.ts';
import { NEEDS_SESSION, type Operation, requiredBody, withHead } from './operation.ts';
import { named, OWN_ROUTE_HEADERS } from './parameters.ts';
import { relayedWhole } from './relayed-buffered.ts';
import {
  ANY_CONTENT,
  BODY_TOO_LARGE,
  BODY_TOO_SLOW,
  NO_SESSION,
  ORIGIN_NOT_ALLOWED,
  ownError,
  type Responses,
  withHeaders,
} from './responses.ts';

const models: Operation<Responses> = {
  method: 'GET',
  path: '/api/music/models',
  detail: {
    operationId: 'listModels',
    summary: 'The models of the account',
    security: NEEDS_SESSION,
    parameters: OWN_ROUTE_HEADERS,
    responses: relayedWhole({ description: 'The upstream’s catalogue as it is.', schema: {} }),
  },
};

const generate: Operation = {
  method: 'POST',
  path: '/api/music/generate',
  detail: {
    operationId: 'generateTrack',
    summary: 'Generate a track',
    description:
      'Answers with the audio as it comes, whose first byte may take 280 seconds. A generation that has begun is paid for and goes on when the client has gone. Where the upstream refuses, its status is the answer’s, with its own text if it gives one.',
    security: NEEDS_SESSION,
    parameters: [...OWN_ROUTE_HEADERS, ...named('Idempotency-Key')],
    responses: {
      200: {
        description: 'The track. Without a content type of the upstream’s it is `audio/mpeg`.',
        headers: { ...EVERY_RESPONSE, ...NO_STORE, ...SESSION_CALL, ...GENERATION, ...ENCODING },
        content: { 'audio/mpeg': { schema: {} }, ...ANY_CONTENT },
      },
      403: ORIGIN_NOT_ALLOWED,
      ...withHeaders(
        {
          400: ownError(
            'A field is not valid, the body is malformed or broke off, `Idempotency-Key` has a control character, or the request names no host.',
          ),
          401: NO_SESSION,
          408: BODY_TOO_SLOW,
          413: BODY_TOO_LARGE,
          429: ownError(
            'The session has too many requests in flight, and this one was not forwarded. Or the upstream refused the generation with 429.',
            RETRY_LATER,
          ),
          502: ownError(
            'The upstream cannot be reached, gives an invalid answer, or is late: then the track may have been generated all the same, and the text says so.',
            RETRY_LATER,
          ),
          503: ownError(
            'The gateway has too many requests in flight, and this one was not forwarded. Or the upstream refused the generation with 503.',
            RETRY_LATER,
          ),
          default: ownError('Any other status with which the upstream refused the generation.'),
        },
        { ...SESSION_CALL, ...PROXY_STATUS, ...LIMITS },
      ),
    },
    requestBody: requiredBody(GenerationRequest, 'application/json'),
  },
};

export const MUSIC_OPERATIONS = [...withHead(models), generate];
