import { afterAll, describe, expect, it } from 'bun:test';
import { startWorld, type World } from '../../support/world.ts';
import { clientIn, fetchOf, openPage, PROVIDER, recorded, rejection, scriptSignIn } from './page.ts';

const STORAGE_KEY = 'music-gateway.sign-in';
const CODE = 'the-code-that-nobody-may-see';

/** A tab that has begun a sign-in, and the verifier that it remembers. */
async function begin(world: Pick<World, 'url'>) {
  const page = openPage();
  const { fetch, sent } = recorded(fetchOf(page));
  const client = clientIn(page, world, { fetch });
  const state = (await client.beginSignIn(PROVIDER)).searchParams.get('state') ?? '';
  const { codeVerifier } = JSON.parse(page.sessionStorage.getItem(STORAGE_KEY) ?? '{}');
  expect(codeVerifier).toMatch(/^[\w-]{43}$/);
  return { page, client, sent, state, secrets: [CODE, String(codeVerifier)] };
}

function redirectWith(parameters: Record<string, string>): string {
  return `${PROVIDER.redirectUri}?${new URLSearchParams(parameters)}`;
}

/** Looks through everything that a log or an error service could read of an error. */
function expectNoSecrets(error: unknown, secrets: readonly string[]): void {
  expect(error).toBeInstanceOf(Error);
  let text = Bun.inspect(error, { depth: 20 });
  for (let each = error; each instanceof Error; each = each.cause) {
    const own = Object.getOwnPropertyNames(each).map((name) => Reflect.get(each, name));
    text += [each.message, each.stack, String(each), Bun.inspect(own, { depth: 20 })].join('\n');
  }
  for (const secret of secrets) expect(text).not.toContain(secret);
}

/** Responses that do not belong to the sign-in. */
const FOREIGN: [name: string, response: (state: string) => string][] = [
  ['a foreign state', () => redirectWith({ code: CODE, state: 'somebody-elses' })],
  ['no more than the start of the state', (state) => redirectWith({ code: CODE, state: state.slice(0, -1) })],
  ['a foreign issuer', (state) => redirectWith({ code: CODE, state, iss: 'https://evil.test' })],
  ['an error with a foreign state', () => redirectWith({ error: 'access_denied', state: 'somebody-elses' })],
  ['an empty code', (state) => redirectWith({ code: '', state })],
  ['two codes', (state) => `${redirectWith({ code: CODE, state })}&code=another`],
  ['two states', (state) => `${redirectWith({ code: CODE, state })}&state=another`],
  ['tokens of the implicit flow', (state) => redirectWith({ code: CODE, state, id_token: 'e.y.J' })],
];

/** No request of these tests may reach it. */
const world = startWorld();
afterAll(async () => {
  expect(world.upstream.received).toEqual([]);
  await world[Symbol.asyncDispose]();
});

describe('a response to no sign-in of this tab', () => {
  it.each(FOREIGN)('with %s is not used, and ends the sign-in', async (_, response) => {
    const { client, page, sent, state, secrets } = await begin(world);
    const error = await rejection(client.completeSignIn(response(state)));
    expect(error).toMatchObject({ name: 'SignInError', code: 'invalid_response' });
    expectNoSecrets(error, secrets);
    expect(page.sessionStorage.length).toBe(0);
    const late = await rejection(client.completeSignIn(redirectWith({ code: CODE, state })));
    expect(late).toMatchObject({ name: 'SignInError', code: 'not_begun' });
    expect(sent).toEqual([]);
  });

  it('is reported as denied when the user has said no', async () => {
    const { client, sent, state, secrets } = await begin(world);
    const denied = redirectWith({ error: 'access_denied', error_description: `not ${CODE}`, state });
    const error = await rejection(client.completeSignIn(denied));
    expect(error).toMatchObject({
      name: 'SignInError',
      code: 'denied',
      message: 'The identity provider refused: access_denied',
    });
    expectNoSecrets(error, secrets);
    expect(sent).toEqual([]);
  });

  it.each([
    undefined,
    'no JSON',
    'null',
    '[]',
    '{"state":"x","codeVerifier":1,"issuer":"i","clientId":"c"}',
    '{"codeVerifier":"v","issuer":"i","clientId":"c"}',
    '{"state":"x","codeVerifier":"v","clientId":"c"}',
    '{"state":"x","codeVerifier":"v","issuer":"i"}',
  ])('is refused when the storage holds %p', async (content) => {
    const page = openPage();
    if (content !== undefined) page.sessionStorage.setItem(STORAGE_KEY, content);
    const client = clientIn(page, world);
    const error = await rejection(client.completeSignIn(redirectWith({ code: CODE, state: 'x' })));
    expect(error).toMatchObject({ name: 'SignInError', code: 'not_begun' });
    expectNoSecrets(error, [CODE]);
    expect(page.sessionStorage.length).toBe(0);
  });
});

describe('an address that is not a response', () => {
  it.each(['', '?code=x', '?state=x', '?error=x', '?listen=1#state=x&code=y'])(
    'as /%s leaves the sign-in as it is',
    async (query) => {
      const { client, page, sent } = await begin(world);
      expect(await client.completeSignIn(PROVIDER.redirectUri + query)).toBe(false);
      expect(page.sessionStorage.getItem(STORAGE_KEY)).not.toBeNull();
      expect(sent).toEqual([]);
    },
  );

  it.each([`/callback?code=${CODE}&state=x`, '', `http://[::1?code=${CODE}`])(
    'is not quoted when it is not absolute: %p',
    async (address) => {
      const { client, secrets } = await begin(world);
      const error = await rejection(client.completeSignIn(address));
      expect(error).toBeInstanceOf(TypeError);
      expectNoSecrets(error, secrets);
    },
  );
});

describe('a sign-in at the gateway', () => {
  it('fails with the reason, without its secrets, and is over', async () => {
    await using world = startWorld();
    world.upstream.on('POST /oauth/token', () => Response.json({ error: 'invalid_grant' }, { status: 400 }));
    for (const [status, { url }] of [
      [400, world],
      [0, { url: 'http://127.0.0.1:1' }],
    ] as const) {
      const { client, page, state, secrets } = await begin({ url });
      const response = redirectWith({ code: CODE, state });
      const error = await rejection(client.completeSignIn(response));
      expect(error).toMatchObject({ name: 'GatewayRequestError', status });
      expectNoSecrets(error, secrets);
      expect(await rejection(client.completeSignIn(response))).toMatchObject({ code: 'not_begun' });
      expect(page.sessionStorage.length).toBe(0);
    }
    expect(world.upstream.calls).toEqual(['POST /oauth/token']);
  });

  it('is not repeated once it was completed', async () => {
    await using world = startWorld();
    scriptSignIn(world);
    const { client, state } = await begin(world);
    const response = redirectWith({ code: CODE, state, iss: PROVIDER.issuer });
    expect(await client.completeSignIn(response)).toBe(true);
    expect(await rejection(client.completeSignIn(response))).toMatchObject({ code: 'not_begun' });
    expect(world.upstream.calls).toEqual(['POST /oauth/token', 'POST /v1/auth/idp']);
  });
});
