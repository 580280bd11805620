import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { Ajv2020 } from 'ajv/dist/2020';
import { type RequestOptions, SIGNED_IN, startWorld, type World } from '../../support/world.ts';
import { GRANT, TRACK } from './calls.ts';
import { operationsOf, readDocument } from './document.ts';

const operations = operationsOf(await readDocument());

const FORM = 'application/x-www-form-urlencoded';

function contentOf(operation: string) {
  const content = operations.get(operation)?.requestBody?.content;
  if (!content) throw new Error(`${operation} takes no body`);
  return content;
}

function isDocumented(operation: string, type: string, body: unknown): boolean {
  // A form has no numbers: its texts count as what they can be read as.
  const coerceTypes = type === FORM;
  return new Ajv2020({ coerceTypes }).validate(contentOf(operation)[type]?.schema ?? false, body);
}

let world: World;
beforeAll(() => {
  world = startWorld();
  world.upstream
    .on('POST /oauth/token', () => Response.json({ access_token: 'identity' }))
    .on('POST /v1/auth/idp', () => Response.json({ access_token: 'a', refresh_token: 'r' }))
    .on('POST /v1/music', () => new Response('audio'));
});
afterAll(() => world[Symbol.asyncDispose]());

async function statusOf(path: string, options: RequestOptions): Promise<number> {
  const response = await world.request(path, { cookie: SIGNED_IN, method: 'POST', ...options });
  await response.arrayBuffer();
  return response.status;
}

const SIGN_INS: unknown[] = [
  GRANT,
  ...['', 'c'.repeat(4096), 'c'.repeat(4097)].map((code) => ({ ...GRANT, code })),
  { ...GRANT, code: 7 },
  { ...GRANT, code: null },
  ...[42, 200, 4096, 4097].map((length) => ({ ...GRANT, code_verifier: 'v'.repeat(length) })),
  { ...GRANT, more: {} },
  { code: 'c' },
  { code_verifier: 'v'.repeat(43) },
];
const GENERATIONS: unknown[] = [
  TRACK,
  ...[2999, 600_000, 600_001, 3000.5, '3000', null].map((length) => ({ ...TRACK, music_length_ms: length })),
  ...['', 'm'.repeat(120), 'm'.repeat(121), 5].map((model) => ({ ...TRACK, model })),
  ...['', 'p'.repeat(4100), 'p'.repeat(4101), ['p']].map((prompt) => ({ ...TRACK, prompt })),
  ...[true, false, 'true', 1, null, {}].map((flag) => ({
    ...TRACK,
    force_instrumental: flag,
    is_public: flag,
  })),
  { ...TRACK, more: [1] },
  { model: 'm', prompt: 'p' },
  { model: 'm', music_length_ms: 3000 },
  { prompt: 'p', music_length_ms: 3000 },
];
const NO_OBJECTS: unknown[] = [{}, [], null, 'text', 5, true];

describe.each([
  ['POST /api/auth/idp', '/api/auth/idp', SIGN_INS],
  ['POST /api/music/generate', '/api/music/generate', GENERATIONS],
])('%s', (operation, path, bodies) => {
  it.each([...bodies, ...NO_OBJECTS].map((body) => [JSON.stringify(body).slice(0, 90), body]))(
    'accepts a body exactly when the document does: %s',
    async (_, body) => {
      const expected = isDocumented(operation, 'application/json', body) ? 200 : 400;
      expect(await statusOf(path, { json: body })).toBe(expected);
    },
  );

  it('accepts a form exactly when the document does', async () => {
    for (const fields of [GRANT, { ...GRANT, code: '' }, TRACK].map((each) => Object.entries(each))) {
      const form = fields.map(([name, value]): [string, string] => [name, String(value)]);
      const expected = isDocumented(operation, FORM, Object.fromEntries(form)) ? 200 : 400;
      expect(await statusOf(path, { body: new URLSearchParams(form) })).toBe(expected);
    }
  });

  it('accepts no other content type than those of the document', async () => {
    const body = JSON.stringify(bodies[0]);
    for (const type of ['application/json', 'text/plain', 'multipart/form-data']) {
      const status = await statusOf(path, { headers: { 'content-type': type }, body });
      expect([type, status]).toEqual([type, type in contentOf(operation) ? 200 : 400]);
    }
  });
});

it.each([
  [`blanks around 4100 letters`, ` ${'p'.repeat(4100)}\n`, 200],
  ['blanks alone', ' \n\t', 400],
  // Each has two code units, where JSON Schema would count one character.
  ['2050 emoji', '🎵'.repeat(2050), 200],
  ['2051 emoji', '🎵'.repeat(2051), 400],
])('the gateway trims and measures a prompt as the document describes: %s', async (_, prompt, status) => {
  expect(await statusOf('/api/music/generate', { json: { ...TRACK, prompt } })).toBe(status);
});
