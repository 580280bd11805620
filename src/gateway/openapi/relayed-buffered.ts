/** Describes the responses of session check and models, which relay the upstream's status, content type and body. */

import { EVERY_RESPONSE, LIMITS, NO_STORE, PROXY_STATUS, SANDBOX, SESSION_CALL } from './headers.ts';
import {
  ANY_CONTENT,
  type Content,
  NO_HOST,
  NO_SESSION,
  ORIGIN_NOT_ALLOWED,
  OVERLOAD,
  ownOrRelayed,
  type Responses,
  SESSION_BUSY,
  UPSTREAM_FAILED,
} from './responses.ts';

const HEADERS = { ...EVERY_RESPONSE, ...NO_STORE, ...SANDBOX, ...SESSION_CALL, ...PROXY_STATUS, ...LIMITS };

export function relayedBuffered(success: { description: string; json: Content }): Responses {
  return {
    200: {
      description: success.description,
      headers: HEADERS,
      content: { ...ANY_CONTENT, ...success.json },
    },
    ...ownOrRelayed(
      {
        400: NO_HOST,
        401: NO_SESSION,
        403: ORIGIN_NOT_ALLOWED,
        429: SESSION_BUSY,
        502: UPSTREAM_FAILED,
        503: OVERLOAD,
      },
      HEADERS,
    ),
    default: {
      description: 'Any other status of the upstream, with its content type, limits and body.',
      headers: HEADERS,
      content: ANY_CONTENT,
    },
  };
}
