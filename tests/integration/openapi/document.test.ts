import { describe, expect, it } from 'bun:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { name, version } from '../../../package.json';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { EXPOSED_HEADERS, REQUEST_HEADERS } from '../../../src/gateway/http/forwarded-headers.ts';
import { GenerationRequest, SessionState, SignInRequest } from '../../../src/gateway/routes/schemas.ts';
import { ROOT } from '../../support/documents.ts';
import * as openapi from '../../support/openapi.ts';
import { recordLog } from '../../support/recorded-log.ts';
import { PROXIED_METHODS } from '../../support/routes.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { SIGNED_IN, testSettings } from '../../support/world.ts';

const { describedNames, document, operations, schemas } = openapi;

const world = sharedWorld();

describe('the OpenAPI document', () => {
  it('is valid OpenAPI 3.1, with the name and the version of the package', () => {
    expect([openapi.validity, openapi.validator.version]).toEqual([{ valid: true }, '3.1']);
    expect(document).toMatchObject({ info: { title: name, version } });
  });

  it('is what is served, what bun run openapi writes, and what other YAML parsers than that of Bun read', async () => {
    const served = await world.request('/api/openapi.json', { origin: null });
    expect(await served.json()).toEqual(document);
    const other = new Validator();
    await other.validate(`${ROOT}src/gateway/openapi/openapi.yaml`);
    expect(other.specification).toEqual(document);
    const { stdout } = Bun.spawnSync([process.execPath, 'run', '--silent', 'openapi'], { cwd: ROOT });
    expect(JSON.parse(stdout.toString())).toEqual(document);
  });

  it('has the rules by which the gateway checks a body', () => {
    // Which message belongs to a field's error is internal to the gateway.
    const withoutMessages = (key: string, value: unknown) => (key === 'error' ? undefined : value);
    const checked = JSON.stringify([SignInRequest, GenerationRequest, SessionState], withoutMessages);
    const described = ['SignInRequest', 'GenerationRequest', 'SessionState'].map((each) => schemas[each]);
    expect(described).toEqual(JSON.parse(checked));
  });

  it('names the headers that a script may send through the proxy, and no others', () => {
    const parameters = operations.get('POST /api/upstream/v1/{rest}')?.parameters ?? [];
    const headers = parameters.filter((parameter) => parameter.in === 'header');
    // OpenAPI has places of its own for these two.
    const named = REQUEST_HEADERS.filter((name) => name !== 'accept' && name !== 'content-type');
    expect(headers.map(({ name }) => name.toLowerCase()).toSorted()).toEqual(named.toSorted());
  });

  // Of the proxied paths, one stands for all. That these methods are served, and no others: relay/unknown-routes.test.ts.
  it('has the routes of the gateway in production with their methods, and no others', () => {
    const settings = testSettings({ NODE_ENV: 'production' });
    const { routes } = createGateway({ logger: recordLog().logger, settings });
    const served: Record<string, string[]> = { ALL: PROXIED_METHODS, GET: ['GET', 'HEAD'], OPTIONS: [] };
    const ofRoutes = routes.flatMap(({ method, path }) =>
      (served[method] ?? [method]).map((each) => `${each} ${path}`),
    );
    const named = [...operations.keys()].filter((operation) => !/\/v1\/(?!{rest})/.test(operation));
    expect(named.map((each) => each.replace('v1/{rest}', '*')).toSorted()).toEqual(ofRoutes.toSorted());
  });

  // That a response is one of them, and has no other headers: every test, by support/openapi.ts.
  it.each([...operations])('has the possible responses to %s alone', (operation, { responses }) => {
    const isProxied = operation.includes('/api/upstream/');
    const callsUpstream = !/health|logout/.test(operation);
    const statuses = [
      ...(isProxied ? ['2XX', '404'] : ['200']),
      ...(operation.endsWith('/health') ? [] : ['400', '403']),
      ...(callsUpstream ? ['401', '502', '503', 'default'] : []),
      ...(callsUpstream && !operation.endsWith('/idp') ? ['429'] : []),
      ...(callsUpstream && !/^(?:GET|HEAD) /.test(operation) ? ['408', '413'] : []),
    ];
    expect(Object.keys(responses).toSorted()).toEqual(statuses.toSorted());
  });

  it('have every header that the proxy relays, and none that it does not', async () => {
    const { headers = {} } = operations.get('GET /api/upstream/v1/{rest}')?.responses['2XX'] ?? {};
    const ofTheGateway = ['set-cookie', 'server-timing', 'proxy-status', 'x-accel-buffering'];
    const documented = describedNames(Object.keys(headers)).filter((name) => !ofTheGateway.includes(name));
    const names = [...documented, ...describedNames(EXPOSED_HEADERS)];
    const challenge = 'Bearer error="insufficient_scope"';
    const values: Readonly<Record<string, string>> = { link: '<x>', 'www-authenticate': challenge };
    const sent = Object.fromEntries(names.map((name) => [name, values[name] ?? 'x']));
    const secret = { 'set-cookie': 'a=b', server: 'x', 'x-powered-by': 'x', 'proxy-status': 'x', via: 'x' };
    world.upstream.on('GET /v1/library', () => new Response('x', { headers: { ...sent, ...secret } }));
    const response = await world.request('/api/upstream/v1/library', { cookie: SIGNED_IN });
    expect(describedNames(response.headers.keys()).toSorted()).toEqual(documented.toSorted());
  });
});
