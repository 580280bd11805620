import { beforeEach, describe, expect, it } from 'bun:test';
import type { MessageKey } from '../../../src/gateway/http/messages.ts';
import type { TokenProblem } from '../../../src/gateway/record/request-record.ts';
import {
  accept,
  checkSession,
  expectRefused,
  ME,
  pair,
  REFRESH,
  reply,
  SIGN_IN,
  signIn,
  TOKEN,
} from '../../support/session-calls.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { REFRESH_ONLY, SIGNED_IN } from '../../support/world.ts';

/** The browser and both servers send it everywhere; no refusal may show it. */
const SECRET = 'secret';
const GRANT = { code: `${SECRET}-code`, code_verifier: SECRET.repeat(8) };
const PAIR = { access_token: `${SECRET}-access`, refresh_token: `${SECRET}-refresh` };
const QUOTE = { ...PAIR, error_description: SECRET, message: SECRET };

const world = sharedWorld();
beforeEach(() => {
  world.upstream.on(TOKEN, reply(200, { access_token: `${SECRET}-identity` })).on(SIGN_IN, reply(200, PAIR));
});

/** A response with headers that must not be relayed. */
function respond(status: number, body: string | null): () => Response {
  const headers = { location: `http://${SECRET}.test`, 'www-authenticate': `Basic realm="${SECRET}"` };
  return () => new Response(body, { status, headers });
}

/** Signs in, and asserts a refusal that gives nothing away, to the client or in the log, and keeps the old session. */
async function expectFailure(calls: string[], status: number, reason: MessageKey, level: string) {
  const response = await signIn(world, GRANT, { cookie: SIGNED_IN });
  expect(JSON.stringify([...response.headers])).not.toMatch(/secret|location|www-authenticate"/);
  expect(await response.clone().text()).not.toMatch(/secret|127\.0\.0\.1/);
  await expectRefused(response, status, reason);
  expect(JSON.stringify(world.lines)).not.toContain(SECRET);
  const line = world.lines.at(-1);
  expect(line).toMatchObject({ status, reason, level });
  expect(world.upstream.calls).toEqual(calls);
  world.upstream.on(ME, accept('access-2')).on(REFRESH, reply(200, pair(2)));
  expect((await checkSession(world, REFRESH_ONLY)).status).toBe(200);
  return line;
}

// When a server is away, is late or does not speak HTTP: relay/every-route.test.ts.
describe('POST /api/auth/idp when the identity provider refuses', () => {
  it.each<[given: number, body: unknown, reason: MessageKey, status: number, oauthError: string | undefined]>(
    [
      [400, { ...QUOTE, error: 'invalid_grant' }, 'signInRefused', 400, 'invalid_grant'],
      [403, { error: 'unauthorized_client' }, 'signInRefused', 403, 'unauthorized_client'],
      [429, { error: SECRET }, 'signInRefused', 429, 'other'],
      [401, 'invalid_client', 'signInRefused', 401, undefined],
      [307, { access_token: 'identity-1' }, 'signInRefused', 401, undefined],
      [599, QUOTE, 'identityProviderFailed', 599, undefined],
      [500, { error: 'invalid_client' }, 'clientRefused', 500, 'invalid_client'],
      [200, { error: 'invalid_client' }, 'clientRefused', 401, 'invalid_client'],
    ],
  )('with %i and the body %j, reports %s with %i', async (given, body, reason, status, oauthError) => {
    world.upstream.on(TOKEN, respond(given, JSON.stringify(body)));
    // Only what is not the user's fault is a warning.
    const line = await expectFailure([TOKEN], status, reason, reason === 'signInRefused' ? 'info' : 'warn');
    expect(line?.['tokenProblem']).toBe(given === 200 ? 'no access_token' : undefined);
    expect(line?.['oauthError']).toBe(oauthError);
  });

  it.each<[body: string, TokenProblem]>([
    ...['', 'access_token=t', '[]'].map((body): [string, TokenProblem] => [body, 'no JSON object']),
    ['{"data":{"access_token":"t"}}', 'no access_token'],
    [`{"id_token":"${SECRET}"}`, 'no access_token'],
    [`{"access_token":"${SECRET} 1"}`, 'invalid access_token'],
  ])('responds 401 when its success has no identity token: %s', async (body, tokenProblem) => {
    world.upstream.on(TOKEN, respond(200, body));
    expect(await expectFailure([TOKEN], 401, 'signInRefused', 'warn')).toMatchObject({ tokenProblem });
  });
});

describe('POST /api/auth/idp when the upstream', () => {
  it.each([
    [400, 400],
    [500, 500],
    [204, 502],
    [307, 502],
  ])('responds %i, responds %i, keeps an earlier session and does not try again', async (given, status) => {
    const body = given === 204 ? null : JSON.stringify({ ...QUOTE, error: { message: SECRET } });
    world.upstream.on(SIGN_IN, respond(given, body));
    await expectFailure([TOKEN, SIGN_IN], status, 'signInFailed', status >= 500 ? 'warn' : 'info');
  });

  it.each<[what: string, pair: object, reason: MessageKey, TokenProblem | undefined]>([
    ['named otherwise', { accessToken: SECRET }, 'signInFailed', 'no access_token'],
    ['half', { access_token: SECRET }, 'signInFailed', 'no refresh_token'],
    ['malformed', { ...PAIR, refresh_token: `${SECRET} r` }, 'signInFailed', 'invalid refresh_token'],
    ['too large for a cookie', { ...PAIR, refresh_token: SECRET.repeat(1000) }, 'tokensTooLarge', undefined],
  ])(
    'gives a pair that is %s, gives no token away and keeps an earlier session',
    async (_, pair, reason, tokenProblem) => {
      world.upstream.on(SIGN_IN, reply(200, pair));
      const line = await expectFailure([TOKEN, SIGN_IN], 502, reason, 'warn');
      expect(line?.['tokenProblem']).toBe(tokenProblem);
    },
  );
});
