import { describe, expect, it } from 'bun:test';
import { Ajv2020 } from 'ajv/dist/2020';
import { scriptRoutes } from '../../support/routes.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { type RequestOptions, SIGNED_IN } from '../../support/world.ts';
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

const world = sharedWorld();
scriptRoutes(world);

async function statusOf(path: string, options: RequestOptions): Promise<number> {
  const response = await world.request(path, { cookie: SIGNED_IN, method: 'POST', ...options });
  await response.arrayBuffer();
  return response.status;
}

/** The gateway checks bodies with the documented schema, so these show that it does, and what it does beside it. */
const SIGN_INS: unknown[] = [GRANT, { ...GRANT, more: {} }, { ...GRANT, code: '' }, { code: 'c' }, [], null];
const GENERATIONS: unknown[] = [
  TRACK,
  { ...TRACK, more: [1] },
  ...[600_000, 600_001, 3000.5, '3000'].map((length) => ({ ...TRACK, music_length_ms: length })),
  ...['', 'p'.repeat(4100), 'p'.repeat(4101)].map((prompt) => ({ ...TRACK, prompt })),
  ...[true, 'true', null].map((flag) => ({ ...TRACK, force_instrumental: flag, is_public: flag })),
  { prompt: 'p', music_length_ms: 3000 },
];

describe.each([
  ['POST /api/auth/idp', '/api/auth/idp', SIGN_INS],
  ['POST /api/music/generate', '/api/music/generate', GENERATIONS],
])('%s', (operation, path, bodies) => {
  it.each(bodies.map((body) => [JSON.stringify(body).slice(0, 90), body]))(
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
