import { describe, expect, it } from 'bun:test';
import { Ajv2020 } from 'ajv/dist/2020';
import { EXPOSED_HEADERS } from '../../../src/gateway/http/forwarded-headers.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { SIGNED_IN } from '../../support/world.ts';
import { operationsOf, readDocument } from './document.ts';
import { rowsOf } from './situations.ts';

/** Of the connection, or in places of their own in OpenAPI, or of CORS, which the document describes as a whole. */
const NOT_DESCRIBED = /^(?:connection|content-length|content-type|date|transfer-encoding|access-control-.*)$/;
const NO_SERVER = 'http://127.0.0.1:1';

const document = await readDocument();
const operations = operationsOf(document);
const rows = rowsOf(operations.keys());

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

const ajv = new Ajv2020();

/** True, or what is wrong. */
function agrees(schema: object, body: string): unknown {
  return ajv.validate(schema, JSON.parse(body)) || ajv.errors;
}

describe('the OpenAPI document', () => {
  const world = sharedWorld();
  const lonely = sharedWorld({ UPSTREAM_URL: NO_SERVER, IDP_URL: NO_SERVER });

  it('has the responses that can be brought about, and no others', () => {
    const documented = [...operations].flatMap(([operation, { responses }]) =>
      Object.keys(responses).map((status) => `${operation} ${status}`),
    );
    const seen = new Set(rows.map(({ operation, status }) => `${operation} ${status}`));
    expect(documented.length).toBeGreaterThan(200);
    expect([...seen].toSorted()).toEqual(documented.toSorted());
  });

  it.each(rows)('describes the response of $operation, $status $what', async (row) => {
    const response = await row.send(row.isLonely ? lonely : world);
    const { key, headers, content } = documentedResponse(row.operation, response.status);
    expect(key).toBe(row.status);

    const known = namesOf(Object.keys(headers));
    expect(namesOf(response.headers.keys()).filter((name) => !known.includes(name))).toEqual([]);
    const required = Object.keys(headers).filter((name) => headers[name]?.required);
    expect(required.filter((name) => !response.headers.has(name))).toEqual([]);
    expect(Object.fromEntries(response.headers)).toMatchObject(row.headers);

    const body = await response.text();
    const [type = ''] = response.headers.get('content-type')?.split(';') ?? [];
    const schema = (content?.[type] ?? content?.['*/*'])?.schema;
    if (content) expect(schema).toBeDefined();
    else expect(body).toBe('');
    const json = type === 'application/json' && content?.[type]?.schema;
    if (json) expect(agrees(json, body)).toBe(true);
    if (schema && row.isOwn) expect(agrees(document.components.schemas.Error, body)).toBe(true);
  });

  it('has every header that the proxy relays, and none that it does not', async () => {
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
