import { describe, expect, it } from 'bun:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { name, version } from '../../../package.json';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { REQUEST_HEADERS } from '../../../src/gateway/http/forwarded-headers.ts';
import { GenerationRequest, SessionState, SignInRequest } from '../../../src/gateway/routes/schemas.ts';
import { rawRequest } from '../../support/raw-http.ts';
import { recordLog } from '../../support/recorded-log.ts';
import { envelopeMessage, ORIGIN, startWorld, testSettings } from '../../support/world.ts';
import { GRANT } from './calls.ts';
import { fetchDocument, operationsOf, readDocument } from './document.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND'];

const document = await fetchDocument();
const read = await readDocument();
const operations = operationsOf(read);
const paths = [...new Set([...operations.keys()].map((name) => name.split(' ')[1] ?? ''))];

describe('the OpenAPI document', () => {
  it('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    expect(await validator.validate(document)).toEqual({ valid: true });
    expect(validator.version).toBe('3.1');
  });

  it('is the file, which other YAML parsers than that of Bun read too', async () => {
    const validator = new Validator();
    const file = new URL('../../../src/gateway/openapi/openapi.yaml', import.meta.url).pathname;
    expect(await validator.validate(file)).toEqual({ valid: true });
    expect(validator.specification).toEqual(document);
  });

  it('is what bun run openapi writes', async () => {
    const written = Bun.spawn([process.execPath, 'run', '--silent', 'openapi'], {
      cwd: new URL('../../..', import.meta.url).pathname,
      stdout: 'pipe',
    });
    expect(await written.stdout.json()).toEqual(document);
    expect(await written.exited).toBe(0);
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

  it('gives every operation a name of its own', () => {
    const names = [...operations.values()].map(({ operationId }) => operationId);
    expect(new Set(names).size).toBe(names.length);
  });

  it('describes each part of a path, and each part of every path', () => {
    for (const [name, { parameters = [] }] of operations) {
      const inPath = parameters
        .filter((parameter) => parameter.in === 'path')
        .map((parameter) => parameter.name);
      expect(inPath).toEqual([...name.matchAll(/\{(\w+)\}/g)].map(([, part]) => String(part)));
    }
  });

  it('has what it refers to, and refers to all that it has', () => {
    const text = JSON.stringify(document);
    const used = new Set(
      [...text.matchAll(/"\$ref":"#\/components\/([^"]+)"/g)].map(([, name]) => String(name)),
    );
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

  it('has every method of a path: the gateway refuses others with 405 and names those', async () => {
    await using world = startWorld();
    // Of the proxied paths, one stands for all methods of all.
    const isWhole = (path: string) => path.endsWith('{rest}') || !path.startsWith('/api/upstream/');
    for (const path of paths.filter(isWhole)) {
      const has = METHODS.filter((method) => operations.has(`${method} ${path}`));
      for (const method of METHODS.filter((each) => !has.includes(each))) {
        const head = `Host: x\r\nOrigin: ${ORIGIN}\r\nConnection: close\r\n\r\n`;
        const target = path.replace('{rest}', 'x');
        const { status, headers } = await rawRequest(world.port, `${method} ${target} HTTP/1.1\r\n${head}`);
        expect([path, method, status]).toEqual([path, method, 405]);
        expect(headers.get('allow')).toBe(has.join(', '));
      }
    }
  });

  it('names the headers that a script may send through the proxy, and no others', () => {
    const { parameters = [] } = operations.get('POST /api/upstream/v1/{rest}') ?? {};
    const headers = parameters
      .filter((parameter) => parameter.in === 'header')
      .map(({ name }) => name.toLowerCase());
    // OpenAPI has places of its own for these two.
    const named = REQUEST_HEADERS.filter((name) => name !== 'accept' && name !== 'content-type');
    expect(headers.toSorted()).toEqual(named.toSorted());
  });

  it('asks the callers of a generated client only for what is in the path', () => {
    const required = [...operations.values()]
      .flatMap(({ parameters = [] }) => parameters)
      .filter((parameter) => parameter.required);
    expect(new Set(required.map((parameter) => parameter.in))).toEqual(new Set(['path']));
  });

  it('calls the session cookies what sign-in calls them', async () => {
    await using world = startWorld();
    world.upstream
      .on('POST /oauth/token', () => Response.json({ access_token: 'identity' }))
      .on('POST /v1/auth/idp', () => Response.json({ access_token: 'a', refresh_token: 'r' }));
    const response = await world.request('/api/auth/idp', { json: GRANT });
    const cookies = response.headers.getSetCookie().map((cookie) => Bun.Cookie.parse(cookie).name);
    expect(Object.values(read.components.securitySchemes).map(({ name }) => name)).toEqual(cookies);
  });
});

describe('GET /api/openapi.json', () => {
  it('is not there in production, like any other address', async () => {
    await using world = startWorld({ NODE_ENV: 'production' });
    const stranger = await world.request('/api/openapi.json', { origin: null });
    expect(await envelopeMessage(stranger, 403)).toBe('Requests from this origin are not allowed.');
    const studio = await world.request('/api/openapi.json');
    expect(await envelopeMessage(studio, 404)).toBe('There is nothing at this address.');
  });

  it('is the only path but health that needs no Origin', async () => {
    await using world = startWorld();
    const others = ['/api/openapi.json/', '/api/openapi.jsonx', '/api/OpenAPI.json', '/api/auth/session'];
    for (const path of others) {
      expect((await world.request(path, { origin: null })).status).toBe(403);
    }
  });
});
