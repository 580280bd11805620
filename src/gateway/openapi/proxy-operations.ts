/** Describes the proxied paths below `/api/upstream/v1/` in the OpenAPI document: any path, and public playback. */

import { NEEDS_SESSION, type Operation } from './operation.ts';
import { named, PROXIED_HEADERS } from './parameters.ts';
import { referencesTo } from './proxy-responses.ts';
import { ANY_CONTENT } from './responses.ts';

const ANY_BODY = { description: 'Up to 2 MB.', content: ANY_CONTENT };

function proxied(
  method: Operation['method'],
  responses: 'Proxied' | 'ProxiedHead' | 'ProxiedWithBody',
): Operation {
  return {
    method,
    path: '/api/upstream/v1/{rest}',
    detail: {
      operationId: `proxied${method[0]}${method.slice(1).toLowerCase()}`,
      summary: `${method} a path of the upstream`,
      description:
        'Relayed to the upstream’s `/v1/` with the session’s access token; the response is streamed. A generated client encodes the slashes in `rest`, so it reaches paths of one segment, and those that are described by themselves.',
      security: NEEDS_SESSION,
      parameters: [...named('rest'), ...PROXIED_HEADERS],
      ...(responses === 'ProxiedWithBody' ? { requestBody: ANY_BODY } : {}),
      responses: referencesTo(responses),
    },
  };
}

function playback(
  operationId: string,
  summary: string,
  path: string,
  responses: ReturnType<typeof referencesTo>,
): Operation {
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
      responses,
    },
  };
}

export const PROXY_OPERATIONS = [
  playback('publicCreation', 'A public creation', '', referencesTo('Playback')),
  playback(
    'publicContent',
    'The audio of a public creation',
    '/content',
    referencesTo('Playback', 'PlaybackAudio'),
  ),
  proxied('GET', 'Proxied'),
  proxied('HEAD', 'ProxiedHead'),
  proxied('POST', 'ProxiedWithBody'),
  proxied('PUT', 'ProxiedWithBody'),
  proxied('PATCH', 'ProxiedWithBody'),
  proxied('DELETE', 'ProxiedWithBody'),
];
