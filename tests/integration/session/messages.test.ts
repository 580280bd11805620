import { expect, it } from 'bun:test';
import { type MessageKey, messages } from '../../../src/gateway/http/messages.ts';
import { GENERATE, TRACK } from '../../support/routes.ts';
import { reply } from '../../support/session-calls.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { envelopeMessage, type RequestOptions, SIGNED_IN } from '../../support/world.ts';

const world = sharedWorld();
const headers = { 'accept-language': 'sw' };
const ORDER = { cookie: SIGNED_IN, json: TRACK };

// Which language is preferred: unit/messages.test.ts.
it.each<[where: string, status: number, path: string, options: RequestOptions, key: MessageKey]>([
  ['the origin is refused', 403, '/api/music/models', { origin: null }, 'originNotAllowed'],
  ['the body is malformed', 400, '/api/auth/idp', { method: 'POST', body: '{' }, 'bodyNotAnObject'],
  ['a generation fails', 500, GENERATE.path, ORDER, 'generationFailed'],
])(
  'A message is in the language of the request, and its log names it, when %s',
  async (_, status, path, options, key) => {
    world.upstream.on('POST /v1/music', reply(500));
    const response = await world.request(path, { ...options, headers });
    expect(await envelopeMessage(response, status)).toBe(messages.sw[key]);
    expect(response.headers.get('content-language')).toBe('sw');
    expect(await world.line({ status })).toMatchObject({ reason: key });
  },
);

it('A text without a known language has no Content-Language', async () => {
  world.upstream.on('POST /v1/music', reply(402, { message: 'Plus de crédits.' }));
  const relayed = await world.request(GENERATE.path, { ...ORDER, headers });
  expect(await envelopeMessage(relayed, 402)).toBe('Plus de crédits.');
  const session = await world.request('/api/auth/session', { headers });
  for (const response of [relayed, session]) expect(response.headers.get('content-language')).toBeNull();
});
