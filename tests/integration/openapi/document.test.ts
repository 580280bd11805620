import { describe, expect, it } from 'bun:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { Ajv2020 } from 'ajv/dist/2020';
import { name, version } from '../../../package.json';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { EXPOSED_HEADERS, REQUEST_HEADERS } from '../../../src/gateway/http/forwarded-headers.ts';
import { GenerationRequest, SessionState, SignInRequest } from '../../../src/gateway/routes/schemas.ts';
import { ROOT } from '../../support/documents.ts';
import { recordLog } from '../../support/recorded-log.ts';
import { rawCall, sharedWorld } from '../../support/shared-world.ts';
import { envelopeMessage, SIGNED_IN, startWorld, testSettings } from '../../support/world.ts';
import { rowsOf } from './situations.ts';

const Json = Type.Record(Type.String(), Type.Unknown());
const Content = Type.Record(Type.String(), Type.Object({ schema: Json }));
const Headers = Type.Record(Type.String(), Type.Object({ required: Type.Optional(Type.Boolean()) }));
const Responses = Type.Object({ headers: Headers, content: Type.Optional(Content) });
const Operation = Type.Object({
  parameters: Type.Optional(Type.Array(Type.Object({ name: Type.String(), in: Type.String() }))),
  responses: Type.Record(Type.String(), Responses),
});
const Document = Type.Object({
  paths: Type.Record(Type.String(), Json),
  components: Type.Object({
    schemas: Type.Object({ Error: Json, SignInRequest: Json, GenerationRequest: Json, SessionState: Json }),
  }),
});

/** Of the connection, or in places of their own in OpenAPI, or of CORS, which the document describes as a whole. */
const NOT_DESCRIBED = /^(?:connection|content-length|content-type|date|transfer-encoding|access-control-.*)$/;
const NO_SERVER = 'http://127.0.0.1:1';

const world = sharedWorld();
const lonely = sharedWorld({ UPSTREAM_URL: NO_SERVER, IDP_URL: NO_SERVER });
const served = await world.request('/api/openapi.json', { origin: null });
const document = Value.Parse(Json, await served.json());
const validator = new Validator();
const validity = await validator.validate(structuredClone(document));
/** With its references followed. */
const { paths, components } = Value.Parse(Document, validator.resolveRefs());
/** By names such as `GET /api/health`. */
const operations: ReadonlyMap<string, Static<typeof Operation>> = new Map(
  Object.entries(paths).flatMap(([path, { parameters: _, ...methods }]) =>
    Object.entries(methods).map(([method, operation]) => {
      return [`${method.toUpperCase()} ${path}`, Value.Parse(Operation, operation)] as const;
    }),
  ),
);
const rows = rowsOf(operations.keys());

describe('the OpenAPI document', () => {
  it('is valid OpenAPI 3.1, with the name and the version of the package', () => {
    expect([validity, validator.version]).toEqual([{ valid: true }, '3.1']);
    expect(document['info']).toMatchObject({ title: name, version });
  });

  it('is what bun run openapi writes, and other YAML parsers than that of Bun read', async () => {
    const other = new Validator();
    await other.validate(`${ROOT}src/gateway/openapi/openapi.yaml`);
    expect(other.specification).toEqual(document);
    const { stdout } = Bun.spawnSync([process.execPath, 'run', '--silent', 'openapi'], { cwd: ROOT });
    expect(JSON.parse(stdout.toString())).toEqual(document);
  });

  it('is not there in production, like any other address', async () => {
    await using production = startWorld({ NODE_ENV: 'production' });
    await envelopeMessage(await production.request('/api/openapi.json', { origin: null }), 403);
    await envelopeMessage(await production.request('/api/openapi.json'), 404);
  });

  it('has the rules by which the gateway checks a body', () => {
    // Which message belongs to a field's error is internal to the gateway.
    const withoutMessages = (key: string, value: unknown) => (key === 'error' ? undefined : value);
    const checked = JSON.stringify([SignInRequest, GenerationRequest, SessionState], withoutMessages);
    const { schemas } = components;
    const described = [schemas.SignInRequest, schemas.GenerationRequest, schemas.SessionState];
    expect(described).toEqual(JSON.parse(checked));
  });

  it('names the headers that a script may send through the proxy, and no others', () => {
    const parameters = operations.get('POST /api/upstream/v1/{rest}')?.parameters ?? [];
    const headers = parameters.filter((parameter) => parameter.in === 'header');
    // OpenAPI has places of its own for these two.
    const named = REQUEST_HEADERS.filter((name) => name !== 'accept' && name !== 'content-type');
    expect(headers.map(({ name }) => name.toLowerCase()).toSorted()).toEqual(named.toSorted());
  });

  it('has the routes of the gateway, and no others', () => {
    const addresses = { UPSTREAM_URL: NO_SERVER, IDP_URL: NO_SERVER };
    const settings = testSettings({ ...addresses, NODE_ENV: 'production' });
    const gateway = createGateway({ logger: recordLog().logger, settings });
    const documented = new Set(Object.keys(paths).map((path) => path.replace(/\/v1\/.*/, '/*')));
    const routes = gateway.routes.filter(({ method }) => method !== 'OPTIONS');
    expect([...documented].toSorted()).toEqual(routes.map(({ path }) => path).toSorted());
  });

  // Of the proxied paths, one stands for all methods of all.
  it.each(Object.keys(paths).filter((path) => path.endsWith('{rest}') || !path.startsWith('/api/upstream/')))(
    'has every method of %s: the gateway refuses others with 405 and names those',
    async (path) => {
      const { status, headers } = await rawCall(world, `PROPFIND ${path.replace('{rest}', 'x')}`);
      expect(status).toBe(405);
      const allowed = headers.get('allow')?.split(', ') ?? [];
      const methods = [...operations.keys()].filter((operation) => operation.endsWith(` ${path}`));
      expect(allowed.map((method) => `${method} ${path}`).toSorted()).toEqual(methods.toSorted());
    },
  );
});

describe('the responses of the OpenAPI document', () => {
  const ajv = new Ajv2020();

  /** True, or what is wrong. */
  function agrees(schema: object, body: string): unknown {
    return ajv.validate(schema, JSON.parse(body)) || ajv.errors;
  }

  function namesOf(names: Iterable<string>): string[] {
    return [...names].map((name) => name.toLowerCase()).filter((name) => !NOT_DESCRIBED.test(name));
  }

  /** The documented response with this status, or of its class, or else the one for all the rest. */
  function documentedResponse(name: string, status: number) {
    const responses = operations.get(name)?.responses ?? {};
    const key = [String(status), `${String(status)[0]}XX`].find((each) => each in responses) ?? 'default';
    const response = responses[key];
    if (!response) throw new Error(`${name} has no ${status}`);
    return { key, ...response };
  }

  it('are those that can be brought about, and no others', () => {
    const documented = [...operations].flatMap(([operation, { responses }]) =>
      // A body that stops arriving: faults/request-limits.test.ts.
      Object.keys(responses).flatMap((status) => (status === '408' ? [] : `${operation} ${status}`)),
    );
    const seen = new Set(rows.map(({ operation, status }) => `${operation} ${status}`));
    expect(documented.length).toBeGreaterThan(150);
    expect([...seen].toSorted()).toEqual(documented.toSorted());
  });

  it.each(rows)('include that of $operation, $status $what', async (row) => {
    const response = await row.send(world, lonely);
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
    if (content?.[type] && type === 'application/json') expect(agrees(content[type].schema, body)).toBe(true);
    if (schema && row.hasEnvelope) expect(agrees(components.schemas.Error, body)).toBe(true);
  });

  it('have every header that the proxy relays, and none that it does not', async () => {
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
