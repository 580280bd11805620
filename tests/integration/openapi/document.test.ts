import { describe, expect, it } from 'bun:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { name, version } from '../../../package.json';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { REQUEST_HEADERS } from '../../../src/gateway/http/forwarded-headers.ts';
import { GenerationRequest, SessionState, SignInRequest } from '../../../src/gateway/routes/schemas.ts';
import { ROOT } from '../../support/documents.ts';
import { recordLog } from '../../support/recorded-log.ts';
import { GENERATE, SIGN_IN_ROUTE, scriptRoutes } from '../../support/routes.ts';
import { rawCall, sharedWorld } from '../../support/shared-world.ts';
import { envelopeMessage, startWorld, testSettings } from '../../support/world.ts';
import { fetchDocument, operationsOf, readDocument } from './document.ts';

const document = await fetchDocument();
const read = await readDocument();
const operations = operationsOf(read);
const paths = [...new Set([...operations.keys()].map((name) => name.split(' ')[1] ?? ''))];
const allParameters = [...operations].flatMap(([operation, { parameters = [] }]) =>
  parameters.map((parameter) => ({ ...parameter, operation })),
);

const world = sharedWorld();
scriptRoutes(world);

describe('the OpenAPI document', () => {
  it('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    expect(await validator.validate(document)).toEqual({ valid: true });
    expect(validator.version).toBe('3.1');
  });

  it('is the file, which other YAML parsers than that of Bun read too', async () => {
    const validator = new Validator();
    await validator.validate(`${ROOT}src/gateway/openapi/openapi.yaml`);
    expect(validator.specification).toEqual(document);
  });

  it('is what bun run openapi writes', async () => {
    const command = [process.execPath, 'run', '--silent', 'openapi'];
    const { stdout, exitCode } = Bun.spawnSync(command, { cwd: ROOT });
    expect(JSON.parse(stdout.toString())).toEqual(document);
    expect(exitCode).toBe(0);
  });

  it('has the name and the version of the package', () => {
    expect(document['info']).toMatchObject({ title: name, version });
  });

  it('has the rules by which the gateway checks a body', () => {
    // Which message belongs to a field's error is internal to the gateway.
    const withoutMessages = (key: string, value: unknown) => (key === 'error' ? undefined : value);
    const checked = JSON.stringify([SignInRequest, GenerationRequest, SessionState], withoutMessages);
    const { schemas } = read.components;
    const described = [schemas.SignInRequest, schemas.GenerationRequest, schemas.SessionState];
    expect(described).toEqual(JSON.parse(checked));
  });

  it.each([SIGN_IN_ROUTE, GENERATE])(
    'has the content types that $name accepts',
    async ({ path, options }) => {
      const { requestBody } = operations.get(`POST ${path}`) ?? {};
      const bodies = {
        'application/json': JSON.stringify(options.json),
        'application/x-www-form-urlencoded': new URLSearchParams(Object(options.json)).toString(),
        'text/plain': JSON.stringify(options.json),
      };
      for (const [type, body] of Object.entries(bodies)) {
        const call = { ...options, json: undefined, method: 'POST', headers: { 'content-type': type }, body };
        const { ok } = await world.request(path, call);
        expect([type, ok]).toEqual([type, type in (requestBody?.content ?? {})]);
      }
    },
  );

  it('gives every operation a name of its own', () => {
    const names = [...operations.values()].map(({ operationId }) => operationId);
    expect(new Set(names).size).toBe(names.length);
  });

  it('describes each part of a path, and asks the callers of a generated client for nothing else', () => {
    const parts = [...operations.keys()].flatMap((operation) =>
      Array.from(operation.matchAll(/\{(\w+)\}/g), ([, part]) => `${operation} ${part}`),
    );
    const nameOf = ({ operation, name }: { operation: string; name: string }) => `${operation} ${name}`;
    expect(allParameters.filter((parameter) => parameter.in === 'path').map(nameOf)).toEqual(parts);
    expect(allParameters.filter(({ required }) => required).map(nameOf)).toEqual(parts);
  });

  it('names the headers that a script may send through the proxy, and no others', () => {
    const headers = allParameters.filter(
      (parameter) => parameter.operation === 'POST /api/upstream/v1/{rest}' && parameter.in === 'header',
    );
    // OpenAPI has places of its own for these two.
    const named = REQUEST_HEADERS.filter((name) => name !== 'accept' && name !== 'content-type');
    expect(headers.map(({ name }) => name.toLowerCase()).toSorted()).toEqual(named.toSorted());
  });

  it('has what it refers to, and refers to all that it has', () => {
    const references = JSON.stringify(document).matchAll(/"\$ref":"#\/components\/([^"]+)"/g);
    const used = new Set(Array.from(references, ([, name]) => String(name)));
    const kept = ['schemas', 'headers', 'parameters', 'responses'].flatMap((kind) =>
      Object.keys(Object(Object(document['components'])[kind])).map((name) => `${kind}/${name}`),
    );
    expect(kept.toSorted()).toEqual([...used].toSorted());
  });

  it('has the routes of the gateway, and no others', () => {
    const addresses = { UPSTREAM_URL: 'http://u.test', IDP_URL: 'http://i.test' };
    const settings = testSettings({ ...addresses, NODE_ENV: 'production' });
    const gateway = createGateway({ logger: recordLog().logger, settings });
    const documented = new Set(paths.map((path) => path.replace(/\/v1\/.*/, '/*')));
    const routes = gateway.routes.filter(({ method }) => method !== 'OPTIONS');
    expect([...documented].toSorted()).toEqual(routes.map(({ path }) => path).toSorted());
  });

  // Of the proxied paths, one stands for all methods of all.
  it.each(paths.filter((path) => path.endsWith('{rest}') || !path.startsWith('/api/upstream/')))(
    'has every method of %s: the gateway refuses others with 405 and names those',
    async (path) => {
      const { status, headers } = await rawCall(world, `PROPFIND ${path.replace('{rest}', 'x')}`);
      const methods = [...operations.keys()].filter((operation) => operation.endsWith(` ${path}`));
      expect(status).toBe(405);
      const allowed = headers.get('allow')?.split(', ') ?? [];
      expect(allowed.map((method) => `${method} ${path}`).toSorted()).toEqual(methods.toSorted());
    },
  );

  it('calls the session cookies what sign-in calls them', async () => {
    const response = await world.request(SIGN_IN_ROUTE.path, SIGN_IN_ROUTE.options);
    const cookies = response.headers.getSetCookie().map((cookie) => Bun.Cookie.parse(cookie).name);
    expect(Object.values(read.components.securitySchemes).map(({ name }) => name)).toEqual(cookies);
  });
});

describe('GET /api/openapi.json', () => {
  it('is not there in production, like any other address', async () => {
    await using production = startWorld({ NODE_ENV: 'production' });
    const stranger = await production.request('/api/openapi.json', { origin: null });
    expect(await envelopeMessage(stranger, 403)).toBe('Requests from this origin are not allowed.');
    const studio = await production.request('/api/openapi.json');
    expect(await envelopeMessage(studio, 404)).toBe('There is nothing at this address.');
  });

  it.each(['/api/openapi.json/', '/api/openapi.jsonx', '/api/OpenAPI.json', '/api/auth/session'])(
    'is the only path but health that needs no Origin: %s needs one',
    async (path) => expect((await world.request(path, { origin: null })).status).toBe(403),
  );
});
