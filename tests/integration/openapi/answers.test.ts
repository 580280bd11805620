import { describe, expect, it } from 'bun:test';
import { Ajv2020 } from 'ajv/dist/2020';
import { SIGNED_IN, startWorld } from '../../support/world.ts';
import { fetchDocument, operationsOf, readDocument } from './document.ts';
import { SCENARIOS } from './scenarios.ts';

/** Of the connection, or in places of their own in OpenAPI, or of CORS, which the document describes as a whole. */
const NOT_DESCRIBED = /^(?:connection|content-length|content-type|date|transfer-encoding|access-control-.*)$/;

const document = readDocument(await fetchDocument());
const operations = operationsOf(document);

function namesOf(names: Iterable<string>): string[] {
  return [...names].map((name) => name.toLowerCase()).filter((name) => !NOT_DESCRIBED.test(name));
}

function answersOf(operation: string) {
  const { responses } = operations.get(operation) ?? {};
  if (!responses) throw new Error(`${operation} is not documented`);
  return responses;
}

/** The answer with this status, or of its class, or else the one for all the rest. */
function documentedAnswer(operation: string, status: number) {
  const responses = answersOf(operation);
  const key = [String(status), `${String(status)[0]}XX`].find((each) => each in responses) ?? 'default';
  const answer = responses[key];
  if (!answer) throw new Error(`${operation} has no ${status}`);
  return { key, ...answer };
}

/** True, or what is wrong. */
function agrees(schema: object, body: string): unknown {
  const ajv = new Ajv2020();
  return ajv.validate(schema, JSON.parse(body)) || ajv.errors;
}

describe('the documented answers', () => {
  it('are those of the scenarios, each at least once', () => {
    const documented = [...operations].flatMap(([operation, { responses }]) =>
      Object.keys(responses).map((status) => `${operation} ${status}`),
    );
    const seen = new Set(SCENARIOS.map(({ operation, status }) => `${operation} ${status}`));
    expect([...seen].toSorted()).toEqual(documented.toSorted());
  });

  it.each([...SCENARIOS])(
    'are given: $operation $status $what',
    async ({ operation, status, environment, headers: expected = {}, isOwn, send }) => {
      await using world = startWorld(environment);
      const response = await send(world);
      const { key, headers, content } = documentedAnswer(operation, response.status);
      expect(key).toBe(status);

      const known = namesOf(Object.keys(headers));
      expect(namesOf(response.headers.keys()).filter((name) => !known.includes(name))).toEqual([]);
      const required = Object.keys(headers).filter((name) => headers[name]?.required);
      expect(required.filter((name) => !response.headers.has(name))).toEqual([]);
      expect(Object.fromEntries(response.headers)).toMatchObject(expected);

      const body = await response.text();
      const [type = ''] = response.headers.get('content-type')?.split(';') ?? [];
      const schema = (content?.[type] ?? content?.['*/*'])?.schema;
      if (content) expect(schema).toBeDefined();
      else expect(body).toBe('');
      if (schema && type === 'application/json') expect(agrees(schema, body)).toBe(true);
      if (schema && isOwn) expect(agrees(document.components.schemas.Error, body)).toBe(true);
    },
  );

  it('of the proxy have every header that is passed on, and none that is not', async () => {
    await using world = startWorld();
    const { headers } = documentedAnswer('GET /api/upstream/v1/{rest}', 200);
    const ofTheGateway = ['set-cookie', 'server-timing', 'proxy-status'];
    const documented = namesOf(Object.keys(headers)).filter((name) => !ofTheGateway.includes(name));
    const sent = Object.fromEntries(documented.map((name) => [name, name === 'link' ? '<x>' : 'x']));
    const secret = { 'set-cookie': 'a=b', server: 'x', 'x-powered-by': 'x', 'proxy-status': 'x', via: 'x' };
    world.upstream.on('GET /v1/library', () => new Response('x', { headers: { ...sent, ...secret } }));
    const response = await world.request('/api/upstream/v1/library', { cookie: SIGNED_IN });
    expect(namesOf(response.headers.keys()).toSorted()).toEqual(documented.toSorted());
  });
});
