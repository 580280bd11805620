import { describe, expect, it } from 'bun:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { REQUEST_HEADERS } from '../../../src/gateway/http/forwarded-headers.ts';
import { rawRequest } from '../../support/raw-http.ts';
import { recordLog } from '../../support/recorded-log.ts';
import { envelopeMessage, ORIGIN, startWorld, testSettings } from '../../support/world.ts';
import { fetchDocument, operationsOf, readDocument } from './document.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND'];

const document = await fetchDocument();
const operations = operationsOf(readDocument(document));

describe('the OpenAPI document', () => {
  it('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    expect(await validator.validate(document)).toEqual({ valid: true });
    expect(validator.version).toBe('3.1');
  });

  it('is what bun run openapi writes', async () => {
    const written = Bun.spawn([process.execPath, 'run', '--silent', 'openapi'], {
      cwd: new URL('../../..', import.meta.url).pathname,
      stdout: 'pipe',
    });
    expect(await written.stdout.json()).toEqual(document);
    expect(await written.exited).toBe(0);
  });

  it('keeps to itself by which message a field is refused', () => {
    expect(JSON.stringify(document)).not.toMatch(/codeInvalid|promptInvalid|bodyNotAnObject/);
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
    const gateway = createGateway({
      logger: recordLog().logger,
      settings: testSettings({
        UPSTREAM_URL: 'http://u.test',
        IDP_URL: 'http://i.test',
        NODE_ENV: 'production',
      }),
    });
    const paths = new Set(
      [...operations.keys()].map((name) => name.split(' ')[1]?.replace(/\/v1\/.*/, '/*')),
    );
    const routes = gateway.routes.filter(({ method }) => method !== 'OPTIONS');
    expect([...paths].toSorted()).toEqual(routes.map(({ path }) => path).toSorted());
  });

  it('has every method of a path: any other is answered with 405 and those that it has', async () => {
    await using world = startWorld();
    const paths = new Set([...operations.keys()].map((name) => name.split(' ')[1] ?? ''));
    for (const path of paths) {
      // With other methods it is one of the proxied paths.
      if (path.includes('{creation_id}')) continue;
      const has = METHODS.filter((method) => operations.has(`${method} ${path}`));
      for (const method of METHODS.filter((each) => !has.includes(each))) {
        const answer = await rawRequest(
          world.port,
          `${method} ${path.replace('{rest}', 'x')} HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\nConnection: close\r\n\r\n`,
        );
        expect([path, method, answer.status]).toEqual([path, method, 405]);
        expect(answer.headers.get('allow')).toBe(has.join(', '));
      }
    }
  });

  it('names the headers that the proxy looks at, and no others', () => {
    const { parameters = [] } = operations.get('POST /api/upstream/v1/{rest}') ?? {};
    const headers = parameters
      .filter((parameter) => parameter.in === 'header')
      .map(({ name }) => name.toLowerCase());
    // OpenAPI has places of its own for the other two.
    const named = REQUEST_HEADERS.filter((name) => name !== 'accept' && name !== 'content-type');
    // No script sends these: a browser or a proxy does.
    expect(headers.toSorted()).toEqual(['accept-encoding', 'origin', 'via', ...named].toSorted());
  });

  it('asks for an Origin wherever the gateway does', () => {
    for (const [name, { parameters = [] }] of operations) {
      const asksFor = parameters.some((parameter) => parameter.name === 'Origin' && parameter.required);
      expect([name, asksFor]).toEqual([name, !name.endsWith('/api/health')]);
    }
  });

  it('calls the session cookies what sign-in calls them', async () => {
    await using world = startWorld();
    world.upstream
      .on('POST /oauth/token', () => Response.json({ access_token: 'identity' }))
      .on('POST /v1/auth/idp', () => Response.json({ access_token: 'a', refresh_token: 'r' }));
    const response = await world.request('/api/auth/idp', {
      json: { code: 'c', code_verifier: 'v'.repeat(43) },
    });
    const cookies = response.headers.getSetCookie().map((cookie) => Bun.Cookie.parse(cookie).name);
    const { securitySchemes } = readDocument(document).components;
    expect(Object.values(securitySchemes).map(({ name }) => name)).toEqual(cookies);
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

  it('opens nothing else to those without an Origin', async () => {
    await using world = startWorld();
    for (const path of [
      '/api/openapi.json/',
      '/api/openapi.jsonx',
      '/api/OpenAPI.json',
      '/api/auth/session',
    ]) {
      expect((await world.request(path, { origin: null })).status).toBe(403);
    }
  });
});
