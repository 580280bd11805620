import { describe, expect, it } from 'bun:test';
import { Ajv2020 } from 'ajv/dist/2020';
import { EXPOSED_HEADERS } from '../../../src/gateway/http/forwarded-headers.ts';
import { SIGNED_IN, startWorld } from '../../support/world.ts';
import { operationsOf, readDocument } from './document.ts';
import { scenariosOf } from './scenarios.ts';

/** Of the connection, or in places of their own in OpenAPI, or of CORS, which the document describes as a whole. */
const NOT_DESCRIBED = /^(?:connection|content-length|content-type|date|transfer-encoding|access-control-.*)$/;

const document = await readDocument();
const operations = operationsOf(document);
const scenarios = scenariosOf(operations);

function namesOf(names: Iterable<string>): string[] {
  return [...names].map((name) => name.toLowerCase()).filter((name) => !NOT_DESCRIBED.test(name));
}

/** The documented response with this status, or of its class, or else the one for all the rest. */
function documentedResponse(operation: string, status: number) {
  const responses = operations.get(operation)?.responses ?? {};
  const key = [String(status), `${String(status)[0]}XX`].find((each) => each in responses) ?? 'default';
  const response = responses[key];
  if (!response) throw new Error(`${operation} has no ${status}`);
  return { key, ...response };
}

/** True, or what is wrong. */
function agrees(schema: object, body: string): unknown {
  const ajv = new Ajv2020();
  return ajv.validate(schema, JSON.parse(body)) || ajv.errors;
}

describe('the OpenAPI document', () => {
  it('has the responses of the scenarios, and no others', () => {
    const documented = [...operations].flatMap(([operation, { responses }]) =>
      Object.keys(responses).map((status) => `${operation} ${status}`),
    );
    const seen = new Set(scenarios.map(({ operation, status }) => `${operation} ${status}`));
    expect([...seen].toSorted()).toEqual(documented.toSorted());
  });

  it.each(scenarios)(
    'describes the response of $operation, $status $what',
    async ({ operation, status, environment, headers: expected, isOwn, send }) => {
      await using world = startWorld(environment);
      const response = await send(world);
      const { key, headers, content } = documentedResponse(operation, response.status);
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
      const json = type === 'application/json' && content?.[type]?.schema;
      if (json) expect(agrees(json, body)).toBe(true);
      if (schema && isOwn) expect(agrees(document.components.schemas.Error, body)).toBe(true);
    },
  );

  it('has every header that the proxy relays, and none that it does not', async () => {
    await using world = startWorld();
    const { headers } = documentedResponse('GET /api/upstream/v1/{rest}', 200);
    const ofTheGateway = ['set-cookie', 'server-timing', 'proxy-status'];
    const documented = namesOf(Object.keys(headers)).filter((name) => !ofTheGateway.includes(name));
    const names = [...documented, ...namesOf(EXPOSED_HEADERS)];
    const values: Readonly<Record<string, string>> = { link: '<x>', 'www-authenticate': 'Bearer error="x"' };
    const sent = Object.fromEntries(names.map((name) => [name, values[name] ?? 'x']));
    const secret = { 'set-cookie': 'a=b', server: 'x', 'x-powered-by': 'x', 'proxy-status': 'x', via: 'x' };
    world.upstream.on('GET /v1/library', () => new Response('x', { headers: { ...sent, ...secret } }));
    const response = await world.request('/api/upstream/v1/library', { cookie: SIGNED_IN });
    expect(namesOf(response.headers.keys()).toSorted()).toEqual(documented.toSorted());
  });
});
