import { beforeEach, describe, expect, it } from 'bun:test';
import type { MessageKey } from '../../../src/gateway/http/messages.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { expectRefused, reply, SIGN_IN, signIn, TOKEN } from '../../support/session-calls.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { ACCESS_ONLY, startWorld, type World } from '../../support/world.ts';

const BOTH_STEPS = [TOKEN, SIGN_IN];
/** The browser and both servers send it everywhere; no refusal may show it. */
const SECRET = 'secret';
const GRANT = { code: `${SECRET}-code`, code_verifier: SECRET.repeat(8) };
const PAIR = { access_token: `${SECRET}-access`, refresh_token: `${SECRET}-refresh` };
const QUOTE = { ...PAIR, error_description: SECRET, message: SECRET };

const world = sharedWorld();
const scriptSuccess = ({ upstream }: World) =>
  upstream.on(TOKEN, reply(200, { access_token: `${SECRET}-identity` })).on(SIGN_IN, reply(200, PAIR));
beforeEach(() => void scriptSuccess(world));

/** Asserts a refusal that gives nothing away, neither to the client nor to a reader of the log. */
async function expectFailure(response: Response, status: number, reason: MessageKey, { lines } = world) {
  expect(JSON.stringify([...response.headers])).not.toContain(SECRET);
  expect(response.headers.get('location')).toBeNull();
  const text = await response.clone().text();
  expect(text).not.toMatch(/secret|127\.0\.0\.1/);
  await expectRefused(response, status, reason);
  expect(JSON.stringify(lines)).not.toContain(SECRET);
  expect(lines.at(-1)).toMatchObject({ status, reason });
}

describe('POST /api/auth/idp when the identity provider refuses', () => {
  const INVALID_CLIENT = { ...QUOTE, error: 'invalid_client' };

  it.each<[given: number, body: unknown, reason: MessageKey, status: number, oauthError: string | undefined]>(
    [
      [400, { ...QUOTE, error: 'invalid_grant' }, 'signInRefused', 400, 'invalid_grant'],
      [401, { error: 'invalid_request' }, 'signInRefused', 401, 'invalid_request'],
      [403, { error: 'unauthorized_client' }, 'signInRefused', 403, 'unauthorized_client'],
      [404, { error: 'unsupported_grant_type' }, 'signInRefused', 404, 'unsupported_grant_type'],
      [429, { error: 'invalid_scope' }, 'signInRefused', 429, 'invalid_scope'],
      [400, { error: 'slow_down' }, 'signInRefused', 400, 'other'],
      [400, { error: SECRET }, 'signInRefused', 400, 'other'],
      [400, { error: '' }, 'signInRefused', 400, 'other'],
      [400, { error: { message: SECRET } }, 'signInRefused', 400, undefined],
      [400, QUOTE, 'signInRefused', 400, undefined],
      [400, 'invalid_client', 'signInRefused', 400, undefined],
      [400, null, 'signInRefused', 400, undefined],
      [307, { access_token: 'identity-1' }, 'signInRefused', 401, undefined],
      [500, { ...QUOTE, error: 'server_error' }, 'identityProviderFailed', 500, 'other'],
      [599, QUOTE, 'identityProviderFailed', 599, undefined],
      [400, INVALID_CLIENT, 'clientRefused', 400, 'invalid_client'],
      [401, INVALID_CLIENT, 'clientRefused', 401, 'invalid_client'],
      [500, INVALID_CLIENT, 'clientRefused', 500, 'invalid_client'],
      [200, { error: 'invalid_client' }, 'clientRefused', 401, 'invalid_client'],
    ],
  )('with %i and the body %j, reports %s with %i', async (given, body, reason, status, oauthError) => {
    const location = `${world.upstream.identityProviderUrl}/${SECRET}`;
    world.upstream.on(TOKEN, () => Response.json(body, { status: given, headers: { location } }));
    await expectFailure(await signIn(world, GRANT), status, reason);
    expect(world.upstream.calls).toEqual([TOKEN]);
    // Only what is not the user's fault is a warning.
    expect(world.lines.at(-1)?.['level']).toBe(reason === 'signInRefused' ? 'info' : 'warn');
    expect(world.lines.at(-1)?.['oauthError']).toBe(oauthError);
  });

  it('responds 401 when its success has no identity token', async () => {
    const tokens = ['', null, 42, 'identity 1', 'identity\n1', 'idéntity'];
    const bodies = [
      ...['', 'not JSON', 'null', '[]', '{}', '{"id_token":"t"}', '{"data":{"access_token":"t"}}'],
      ...[
        'access_token=t&token_type=bearer',
        ...tokens.map((token) => JSON.stringify({ access_token: token })),
      ],
    ];
    for (const body of bodies) {
      world.upstream.on(TOKEN, () => new Response(body));
      await expectFailure(await signIn(world, GRANT), 401, 'signInRefused');
    }
    expect(world.upstream.calls).toEqual(bodies.map(() => TOKEN));
  });
});

describe('POST /api/auth/idp when the upstream refuses', () => {
  it.each([
    ...[400, 401, 403, 404, 409, 422, 429, 500, 503].map((status) => [status, status] as const),
    [204, 502],
    [307, 502],
  ])('with %i, responds %i, keeps an earlier session and does not try again', async (given, status) => {
    const headers = { location: `${world.upstream.upstreamUrl}/v1/${SECRET}` };
    const body = given === 204 ? null : JSON.stringify({ ...QUOTE, error: { message: SECRET } });
    world.upstream.on(SIGN_IN, () => new Response(body, { status: given, headers }));
    const response = await signIn(world, GRANT, { cookie: ACCESS_ONLY });
    await expectFailure(response, status, 'signInFailed');
    expect(world.upstream.calls).toEqual(BOTH_STEPS);
    expect(world.lines.at(-1)?.['level']).toBe(status >= 500 ? 'warn' : 'info');
  });
});

// When a server is away or late: relay/every-route.test.ts.
describe('POST /api/auth/idp when a server fails', () => {
  it.each<[what: string, setting: string, bytes: string, reason: MessageKey, calls: string[]]>([
    [
      'the response of the provider breaks off',
      'IDP_URL',
      'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"access_token":"identity-1"}',
      'identityProviderUnreachable',
      [],
    ],
    ['the upstream closes the connection', 'UPSTREAM_URL', '', 'upstreamUnreachable', [TOKEN]],
    [
      'the status of the upstream is no status',
      'UPSTREAM_URL',
      'HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n',
      'upstreamInvalid',
      [TOKEN],
    ],
  ])('responds 502 because %s', async (_, setting, bytes, reason, calls) => {
    await using broken = await startRawUpstream((socket) => socket.end(bytes));
    await using other = startWorld({ [setting]: broken.url });
    scriptSuccess(other);
    await expectFailure(await signIn(other, GRANT), 502, reason, other);
    expect(other.upstream.calls).toEqual(calls);
  });

  it.each<[what: string, tokens: object, reason: MessageKey]>([
    ['malformed', { ...PAIR, refresh_token: `${SECRET} refresh` }, 'signInFailed'],
    ['too large for a cookie', { ...PAIR, refresh_token: SECRET.repeat(1000) }, 'tokensTooLarge'],
  ])('gives no token away when the pair is %s', async (_, tokens, reason) => {
    world.upstream.on(SIGN_IN, reply(200, tokens));
    await expectFailure(await signIn(world, GRANT), 502, reason);
  });
});
