/** Builds the OpenAPI document of everything that a client can request from the gateway. */

import { name, version } from '../../../package.json';
import { ACCOUNT_OPERATIONS } from './account-operations.ts';
import { HEADERS } from './headers.ts';
import { LIBRARY_OPERATIONS } from './library-operations.ts';
import { MUSIC_OPERATIONS } from './music-operations.ts';
import { type Operation, SECURITY_SCHEMES } from './operation.ts';
import { PARAMETERS } from './parameters.ts';
import { PROXY_OPERATIONS } from './proxy-operations.ts';
import { PROXY_RESPONSES } from './proxy-responses.ts';
import { SCHEMAS } from './responses.ts';

const OPENAPI_VERSION = '3.1.1';

const DESCRIPTION = `Keeps a music studio's tokens out of the browser: sign-in, session cookies, refresh and streaming relay.

Every request except the one for health must have an allowed \`Origin\`, which browsers add by themselves. A path that is
not described here is 404, and a method that a path does not support is 405 with \`Allow\`; both have the form of
\`Error\`, as does a 500, which is a fault of the gateway. What is not valid HTTP, or has a head of more than 16 KiB, gets
400 or 431 without a body.

Responses have the CORS headers that let the allowed origin read them, with credentials; preflights are supported.`;

const OPERATIONS = [...ACCOUNT_OPERATIONS, ...MUSIC_OPERATIONS, ...LIBRARY_OPERATIONS, ...PROXY_OPERATIONS];

/** Written beside the routes and not read from them: one route takes every method, and HEAD has none of its own. */
function describedPaths() {
  const paths: Record<string, Record<string, Operation['detail']>> = {};
  for (const { method, path, detail } of OPERATIONS) {
    paths[path] = { ...paths[path], [method.toLowerCase()]: detail };
  }
  return paths;
}

/** Leaves out which message belongs to a field's error, because that is internal to the gateway. */
function withoutMessageKeys(key: string, value: unknown): unknown {
  return key === 'error' && typeof value === 'string' ? undefined : value;
}

export function openApiDocument(): Record<string, unknown> {
  const document = {
    openapi: OPENAPI_VERSION,
    info: { title: name, version, description: DESCRIPTION },
    servers: [{ url: '/' }],
    paths: describedPaths(),
    components: {
      schemas: SCHEMAS,
      headers: HEADERS,
      parameters: PARAMETERS,
      responses: PROXY_RESPONSES,
      securitySchemes: SECURITY_SCHEMES,
    },
  };
  return JSON.parse(JSON.stringify(document, withoutMessageKeys));
}
