import { expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { GENERATE } from '../../support/routes.ts';
import { reply } from '../../support/session-calls.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { envelopeMessage, type RequestOptions } from '../../support/world.ts';

const world = sharedWorld();
const FRENCH = 'Plus de crédits.';
world.upstream.on(GENERATE.calls.join(), reply(402, { message: FRENCH }));

// Which language is preferred: unit/messages.test.ts.
it.each<
  [why: string, status: number, path: string, options: RequestOptions, text: string, language: string | null]
>([
  ['the origin is refused', 403, '/api/music/models', { origin: null }, messages.sw.originNotAllowed, 'sw'],
  [
    'the body is malformed',
    400,
    '/api/auth/idp',
    { method: 'POST', body: '{' },
    messages.sw.bodyNotAnObject,
    'sw',
  ],
  ['the upstream has a text of its own', 402, GENERATE.path, GENERATE.options, FRENCH, null],
])(
  'A text is in the language of the request, as far as it is known, when %s',
  async (_, status, path, options, text, language) => {
    const response = await world.request(path, { ...options, headers: { 'accept-language': 'sw' } });
    expect(await envelopeMessage(response, status)).toBe(text);
    expect(response.headers.get('content-language')).toBe(language);
  },
);
