import { beforeEach, describe, expect, it } from 'bun:test';
import type { MessageKey } from '../../../src/gateway/http/messages.ts';
import { expectRefused, reply, SIGN_IN, signIn, TOKEN } from '../../support/session-calls.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { ACCESS_ONLY } from '../../support/world.ts';

/** The browser and both servers send it everywhere; no refusal may show it. */
const SECRET = 'secret';
const GRANT = { code: `${SECRET}-code`, code_verifier: SECRET.repeat(8) };
const PAIR = { access_token: `${SECRET}-access`, refresh_token: `${SECRET}-refresh` };
const QUOTE = { ...PAIR, error_description: SECRET, message: SECRET };

const world = sharedWorld();
beforeEach(() => {
  world.upstream.on(TOKEN, reply(200, { access_token: `${SECRET}-identity` })).on(SIGN_IN, reply(200, PAIR));
});

/** Signs in, and asserts a refusal that gives nothing away, neither to the client nor to a reader of the log. */
async function expectFailure(status: number, reason: MessageKey, level: string) {
  const response = await signIn(world, GRANT, { cookie: ACCESS_ONLY });
  expect(JSON.stringify([...response.headers])).not.toContain(SECRET);
  expect(response.headers.get('location')).toBeNull();
  expect(await response.clone().text()).not.toMatch(/secret|127\.0\.0\.1/);
  await expectRefused(response, status, reason);
  expect(JSON.stringify(world.lines)).not.toContain(SECRET);
  expect(world.lines.at(-1)).toMatchObject({ status, reason, level });
}

// When a server is away, is late or does not speak HTTP: relay/every-route.test.ts and relay/deadlines.test.ts.
describe('POST /api/auth/idp when the identity provider refuses', () => {
  const INVALID_CLIENT = { ...QUOTE, error: 'invalid_client' };

  it.each<[given: number, body: unknown, reason: MessageKey, status: number, oauthError: string | undefined]>(
    [
      [400, { ...QUOTE, error: 'invalid_grant' }, 'signInRefused', 400, 'invalid_grant'],
      [401, { error: 'invalid_request' }, 'signInRefused', 401, 'invalid_request'],
      [403, { error: 'unauthorized_client' }, 'signInRefused', 403, 'unauthorized_client'],
      [404, { error: 'unsupported_grant_type' }, 'signInRefused', 404, 'unsupported_grant_type'],
      [429, { error: 'invalid_scope' }, 'signInRefused', 429, 'invalid_scope'],
      [400, { error: SECRET }, 'signInRefused', 400, 'other'],
      [400, { error: { message: SECRET } }, 'signInRefused', 400, undefined],
      [400, 'invalid_client', 'signInRefused', 400, undefined],
      [400, null, 'signInRefused', 400, undefined],
      [307, { access_token: 'identity-1' }, 'signInRefused', 401, undefined],
      [500, { ...QUOTE, error: 'server_error' }, 'identityProviderFailed', 500, 'other'],
      [599, QUOTE, 'identityProviderFailed', 599, undefined],
      [400, INVALID_CLIENT, 'clientRefused', 400, 'invalid_client'],
      [500, INVALID_CLIENT, 'clientRefused', 500, 'invalid_client'],
      [200, { error: 'invalid_client' }, 'clientRefused', 401, 'invalid_client'],
    ],
  )('with %i and the body %j, reports %s with %i', async (given, body, reason, status, oauthError) => {
    const location = `${world.upstream.identityProviderUrl}/${SECRET}`;
    world.upstream.on(TOKEN, () => Response.json(body, { status: given, headers: { location } }));
    // Only what is not the user's fault is a warning.
    await expectFailure(status, reason, reason === 'signInRefused' ? 'info' : 'warn');
    expect(world.upstream.calls).toEqual([TOKEN]);
    expect(world.lines.at(-1)?.['oauthError']).toBe(oauthError);
  });

  const NO_TOKENS = ['', null, 42, 'identity 1', 'identity\n1', 'idéntity'];

  it.each([
    ...['', 'not JSON', 'null', '[]', '{}', '{"id_token":"t"}', '{"data":{"access_token":"t"}}'],
    ...['access_token=t&token_type=bearer'],
    ...NO_TOKENS.map((token) => JSON.stringify({ access_token: token })),
  ])('responds 401 when its success has no identity token: %s', async (body) => {
    world.upstream.on(TOKEN, () => new Response(body));
    await expectFailure(401, 'signInRefused', 'info');
    expect(world.upstream.calls).toEqual([TOKEN]);
  });
});

describe('POST /api/auth/idp when the upstream refuses', () => {
  it.each([
    [400, 400],
    [401, 401],
    [429, 429],
    [500, 500],
    [503, 503],
    [204, 502],
    [307, 502],
  ])('with %i, responds %i, keeps an earlier session and does not try again', async (given, status) => {
    const headers = { location: `${world.upstream.upstreamUrl}/v1/${SECRET}` };
    const body = given === 204 ? null : JSON.stringify({ ...QUOTE, error: { message: SECRET } });
    world.upstream.on(SIGN_IN, () => new Response(body, { status: given, headers }));
    await expectFailure(status, 'signInFailed', status >= 500 ? 'warn' : 'info');
    expect(world.upstream.calls).toEqual([TOKEN, SIGN_IN]);
  });

  it.each<[what: string, refresh_token: string, reason: MessageKey]>([
    ['malformed', `${SECRET} refresh`, 'signInFailed'],
    ['too large for a cookie', SECRET.repeat(1000), 'tokensTooLarge'],
  ])('gives no token away when the pair is %s', async (_, refresh_token, reason) => {
    world.upstream.on(SIGN_IN, reply(200, { ...PAIR, refresh_token }));
    await expectFailure(502, reason, 'warn');
  });
});
