import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { COSTLY_BODIES } from '../../support/costly-bodies.ts';
import { GENERATE, SIGN_IN_ROUTE, scriptRoutes } from '../../support/routes.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { envelopeMessage, ORIGIN, SIGNED_IN } from '../../support/world.ts';

const ROUTES = [SIGN_IN_ROUTE, GENERATE].map(({ name, path, calls, options }) => ({
  name,
  path,
  calls: [...calls],
  valid: JSON.stringify(options.json),
}));

const world = sharedWorld();
scriptRoutes(world);

type Body = string | Uint8Array<ArrayBuffer>;

function post(path: string, body: Body, contentType = 'application/json'): Promise<Response> {
  const headers = { 'content-type': contentType };
  return world.request(path, { method: 'POST', cookie: SIGNED_IN, body, headers });
}

async function expectRefusal(response: Response, expected: string | RegExp): Promise<void> {
  expect(await envelopeMessage(response, 400)).toMatch(expected);
  expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN);
  expect(world.upstream.calls).toEqual([]);
  expect(world.log).toEqual([]);
}

describe.each(ROUTES)('the JSON body of $name', ({ path, calls, valid }) => {
  async function expectAccepted(response: Response): Promise<void> {
    expect(response.status).toBe(200);
    expect(world.upstream.calls).toEqual(calls);
  }

  // What counts as malformed or too complex: unit/request-fields.test.ts.
  it.each<[string, Body]>([
    ['is empty', ''],
    ['is not UTF-8', new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['is UTF-16', Uint8Array.from(Buffer.from(valid, 'utf16le'))],
    ['is a form', 'code=c&code_verifier=v'],
  ])('is refused as malformed when it %s', async (_, body) => {
    await expectRefusal(await post(path, body), messages.en.bodyMalformed);
  });

  it.each(['null', 'true', '1', '"text"', '[]', `[${valid}]`, '{}', '{"__proto__":{"model":"m"}}'])(
    'is refused when it is %s',
    async (body) => {
      await expectRefusal(
        await post(path, body),
        /^The request body must be a JSON object|^(code|model) must/,
      );
    },
  );

  it.each([
    ['65 levels', `{"more":${'['.repeat(64)}${']'.repeat(64)},${valid.slice(1)}`],
    ['1,001 brackets', `{"more":[${'{},'.repeat(998)}{}],${valid.slice(1)}`],
    ['100,000 opening brackets', '['.repeat(100_000)],
  ])('is refused before it is parsed when it has %s', async (_, body) => {
    await expectRefusal(await post(path, body), messages.en.bodyTooComplex);
  });

  it.each([
    ['64 levels', `{"more":${'['.repeat(63)}${']'.repeat(63)},${valid.slice(1)}`],
    ['brackets and commas in a string', `{"more":${JSON.stringify('"[{,\\'.repeat(5000))},${valid.slice(1)}`],
    ['a byte order mark', `\ufeff${valid}`],
  ])('is accepted with %s', async (_, body) => {
    await expectAccepted(await post(path, body));
  });

  it.each([
    ...['application/json; charset=utf-8', 'application/json;charset=UTF-8'],
    ...['APPLICATION/JSON', 'application/json ; x=y'],
  ])('is accepted as %s', async (contentType) => {
    await expectAccepted(await post(path, valid, contentType));
  });

  it.each([
    // Elysia has parsers of its own for the first three.
    ...['text/plain', 'multipart/form-data; boundary=x', 'application/octet-stream'],
    ...['text/json', 'application/jsonp', 'application/ld+json', 'application/json, text/plain'],
    ...['application', 'x'],
  ])('is refused as %s', async (contentType) => {
    await expectRefusal(await post(path, valid, contentType), messages.en.bodyNotAnObject);
  });

  it('is refused without a content type, and so is a request without a body', async () => {
    for (const body of [new Blob([valid]), undefined]) {
      const call = { method: 'POST', cookie: SIGNED_IN, ...(body && { body }) };
      await expectRefusal(await world.request(path, call), messages.en.bodyNotAnObject);
    }
  });

  it('may hold other keys, and nothing is taken from them', async () => {
    const others = [
      '"__proto__":{"is_public":true,"force_instrumental":true}',
      '"constructor":{"prototype":{"is_public":true}}',
      '"toString":1,"valueOf":1,"hasOwnProperty":1,"toJSON":1,"then":1',
      '"":[],"nested":{"a":[{}]},"data":{"is_public":true},"isPublic":true,"price":0',
    ];
    await expectAccepted(await post(path, `{${others},${valid.slice(1)}`));
    for (const { body } of world.upstream.received) expect(body).not.toMatch(/true|price|nested/);
  });

  it.each(COSTLY_BODIES)('of 2 MB made to cost time is refused: $kind', async ({ type, bytes }) => {
    await expectRefusal(await post(path, bytes(), type), /./);
  });

  it('is refused as a form of far too many fields', async () => {
    const form = Array.from({ length: 300_000 }, (_, index) => index).join('&');
    await expectRefusal(
      await post(path, form, 'application/x-www-form-urlencoded'),
      messages.en.bodyTooComplex,
    );
  });
});
