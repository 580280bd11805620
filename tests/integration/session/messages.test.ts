import { expect, it } from 'bun:test';
import { type MessageKey, messages } from '../../../src/gateway/http/messages.ts';
import { GENERATE, TRACK } from '../../support/routes.ts';
import { reply, silence } from '../../support/session-calls.ts';
import { envelopeMessage, type RequestOptions, SIGNED_IN, startWorld } from '../../support/world.ts';

const IN_SWAHILI = { 'accept-language': 'sw' };

// Which language is preferred: unit/messages.test.ts.
it.each<[where: string, status: number, path: string, options: RequestOptions, key: MessageKey]>([
  ['the origin is refused', 403, '/api/music/models', { origin: null }, 'originNotAllowed'],
  ['the body is malformed', 400, '/api/auth/idp', { method: 'POST', body: '{' }, 'bodyNotAnObject'],
  ['a generation is late', 502, GENERATE.path, { json: TRACK }, 'generationTimeout'],
])(
  'A message is in the language of the request, and its log in English, when %s',
  async (_, status, path, options, key) => {
    await using world = startWorld({ TIMEOUT_STREAM_MS: '1000' });
    world.upstream.on('POST /v1/music', silence);
    const response = await world.request(path, { cookie: SIGNED_IN, ...options, headers: IN_SWAHILI });
    expect(await envelopeMessage(response, status)).toBe(messages.sw[key]);
    expect(response.headers.get('content-language')).toBe('sw');
    expect(world.log.join()).toMatch(status === 502 ? `"reason":"${key}"` : /^$/);
  },
);

it('A text without a known language has no Content-Language', async () => {
  await using world = startWorld();
  world.upstream.on('POST /v1/music', reply(402, { message: 'Plus de crédits.' }));
  const order = { cookie: SIGNED_IN, json: TRACK, headers: IN_SWAHILI };
  const relayed = await world.request(GENERATE.path, order);
  expect(await envelopeMessage(relayed, 402)).toBe('Plus de crédits.');
  expect(relayed.headers.get('content-language')).toBeNull();
  const session = await world.request('/api/auth/session', { headers: IN_SWAHILI });
  expect(session.headers.get('content-language')).toBeNull();
});
