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
import { relayedBuffered } from './relayed-buffered.ts';
import {
  BODY_TOO_LARGE,
  BODY_TOO_SLOW,
  BYTES_OF_ANY_TYPE,
  json,
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
    responses: relayedBuffered({
      description: 'The upstream’s catalogue, unchanged.',
      json: json('UpstreamJson'),
    }),
  },
};

const generate: Operation = {
  method: 'POST',
  path: '/api/music/generate',
  detail: {
    operationId: 'generateTrack',
    summary: 'Generate a track',
    description:
      'Streams the audio as it arrives; its first byte may take 280 seconds. A generation that has begun is paid for, so it continues when the client disconnects. When the upstream refuses, the response has its status, and its text if there is one.',
    security: NEEDS_SESSION,
    parameters: [...OWN_ROUTE_HEADERS, ...named('Idempotency-Key')],
    responses: {
      200: {
        description: 'The track: `audio/mpeg` when the upstream names no content type.',
        headers: { ...EVERY_RESPONSE, ...NO_STORE, ...SESSION_CALL, ...GENERATION, ...ENCODING },
        content: BYTES_OF_ANY_TYPE,
      },
      403: ORIGIN_NOT_ALLOWED,
      ...withHeaders(
        {
          400: ownError(
            'A field is invalid, the body is malformed or incomplete, `Idempotency-Key` contains a control character, or the request has no valid Host.',
          ),
          401: NO_SESSION,
          408: BODY_TOO_SLOW,
          413: BODY_TOO_LARGE,
          429: ownError(
            'The session has too many requests in flight, and this one was not forwarded. Or the upstream refused the generation with 429.',
            RETRY_LATER,
          ),
          502: ownError(
            'The upstream cannot be reached, sends an invalid response, or is late. When it is late, the track may have been generated, and the text says so.',
            RETRY_LATER,
          ),
          503: ownError(
            'The gateway has too many requests in flight, and this one was not forwarded. Or it has no memory for the audio of a generation, which the upstream finishes: with `X-Music-Creation-Id`, by which the track is found. Or the upstream refused the generation with 503.',
            { ...RETRY_LATER, ...GENERATION },
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
