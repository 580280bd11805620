/**
 * Describes the proxied paths that a music studio typically uses, as operations of their own: a generated client cannot
 * reach them through the path that stands for all, because it would encode the slashes.
 */

import { NEEDS_SESSION, type Operation } from './operation.ts';
import { named, PROXIED_HEADERS } from './parameters.ts';
import { referencesTo } from './proxy-responses.ts';
import { json } from './responses.ts';

const description =
  'Relayed like any other path of the upstream, which alone decides on the body. The gateway also relays other methods here, and a query.';

function read(operationId: string, summary: string, path: string): Operation {
  return {
    method: 'GET',
    path: `/api/upstream/v1/${path}`,
    detail: {
      operationId,
      summary,
      description,
      security: NEEDS_SESSION,
      parameters: [...(path.includes('{') ? named('creation_id') : []), ...PROXIED_HEADERS],
      responses: referencesTo('Proxied'),
    },
  };
}

const CREATION = 'music/creations/{creation_id}';

const creation = read('getCreation', 'A creation of the account', CREATION);
const content = read('getContent', 'The audio of a creation of the account', `${CREATION}/content`);

const changeCreation: Operation = {
  ...creation,
  method: 'PATCH',
  detail: {
    ...creation.detail,
    operationId: 'changeCreation',
    summary: 'Change a creation of the account, such as who may play it',
    requestBody: {
      content: {
        'application/json': { ...json('UpstreamJson')['application/json'], example: { is_public: true } },
      },
      required: true,
    },
    responses: referencesTo('ProxiedWithBody'),
  },
};

export const LIBRARY_OPERATIONS: readonly Operation[] = [
  read('listCreations', 'The creations of the account', 'music/creations'),
  creation,
  changeCreation,
  { ...content, detail: { ...content.detail, responses: referencesTo('Proxied', 'ProxiedAudio') } },
  read('getBalance', 'The balance of the account', 'billing/balance'),
  read('getSummary', 'What the account has used this month', 'billing/summary'),
  read('listActivity', 'The recent activity of the account', 'activity'),
];
