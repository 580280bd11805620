import { describe, expect, it, onTestFinished } from 'bun:test';
import { createHash } from 'node:crypto';
import { Window } from 'happy-dom';
import { ORIGIN } from '../../support/world.ts';
import { lost, type Respond, rejection, respond, stubGateway } from './gateway-stub.ts';

const PROVIDER = {
  issuer: 'https://id.test',
  authorizationEndpoint: 'https://id.test/oauth/authorize',
  clientId: 'studio',
  redirectUri: `${ORIGIN}/callback`,
};
const STORAGE_KEY = 'music-gateway.sign-in';
const CODE = 'the-code-that-nobody-may-see';
const INVALID = { name: 'SignInError', code: 'invalid_response' };
const DENIED = {
  name: 'SignInError',
  code: 'denied',
  message: 'The identity provider refused: access_denied',
};

/** Opens a page in happy-dom until the test ends. */
function openPage(): Window {
  const page = new Window({ url: `${ORIGIN}/` });
  onTestFinished(() => page.happyDOM.close());
  return page;
}

/** A tab that has begun a sign-in, whose objects the client finds as in a browser. In its addresses these words stand for the code, the state, and its beginning. */
async function begin(responses: Respond | Respond[] = respond(200)) {
  const page = openPage();
  for (const name of ['sessionStorage', 'location', 'history'] as const) {
    Object.defineProperty(globalThis, name, { configurable: true, get: () => page[name] });
    onTestFinished(() => void Reflect.deleteProperty(globalThis, name));
  }
  const { client, sent } = stubGateway(responses);
  const state = (await client.beginSignIn(PROVIDER)).searchParams.get('state') ?? '';
  const { codeVerifier } = JSON.parse(page.sessionStorage.getItem(STORAGE_KEY) ?? '{}');
  expect(codeVerifier).toMatch(/^[\w-]{43}$/);
  const words: Record<string, string> = { CODE, STATE: state, START: state.slice(0, -1) };
  const addressOf = (query: string) =>
    PROVIDER.redirectUri + query.replace(/[A-Z]{4,}/g, (word) => words[word] ?? word);
  return {
    ...{ page, client, sent, secrets: [CODE, String(codeVerifier)] },
    calls: () => sent.map(({ call }) => call),
    addressOf,
    /** Comes back to the page from the provider. */
    comeBack: (query = '?code=CODE&state=STATE') => page.happyDOM.setURL(addressOf(query)),
  };
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

describe('a sign-in', () => {
  it('asks for a code with PKCE, and posts it with the verifier of the challenge', async () => {
    const { sessionStorage: storage } = openPage();
    const { client, sent } = stubGateway(respond(200), { storage });
    const endpoint = `${PROVIDER.authorizationEndpoint}?tenant=a%26b&scope=all`;
    const address = await client.beginSignIn({ ...PROVIDER, authorizationEndpoint: endpoint });
    expect(`${address.origin}${address.pathname}`).toBe(PROVIDER.authorizationEndpoint);
    expect(address.searchParams.getAll('scope')).toEqual(['openid profile']);
    const { state, code_challenge: challenge, ...parameters } = Object.fromEntries(address.searchParams);
    expect(parameters).toEqual({
      tenant: 'a&b',
      response_type: 'code',
      client_id: PROVIDER.clientId,
      redirect_uri: PROVIDER.redirectUri,
      scope: 'openid profile',
      code_challenge_method: 'S256',
    });
    // 32 bytes, in base64url.
    expect(state).toMatch(/^[\w-]{43}$/);
    expect(sent).toEqual([]);

    // By another client of the same tab, as after a navigation.
    const next = stubGateway(respond(200), { storage });
    expect(await next.client.completeSignIn(`${PROVIDER.redirectUri}?code=c-1&state=${state}`)).toBe(true);
    expect(next.sent.map(({ call }) => call)).toEqual(['POST /api/auth/idp']);
    const { code, code_verifier: verifier, ...more } = JSON.parse(String(next.sent[0]?.init.body));
    expect([code, more, storage.length]).toEqual(['c-1', {}, 0]);
    expect(verifier).toMatch(/^[\w.~-]{43,128}$/);
    expect(challenge).toBe(createHash('sha256').update(verifier).digest('base64url'));

    const demands = { scope: 'openid', prompt: 'login', acrValues: 'mfa', maxAgeSeconds: 0 } as const;
    const second = Object.fromEntries((await client.beginSignIn({ ...PROVIDER, ...demands })).searchParams);
    expect(second).toMatchObject({ scope: 'openid', prompt: 'login', acr_values: 'mfa', max_age: '0' });
    expect([state, challenge]).not.toContainAnyValues([second['state'], second['code_challenge']]);
  });

  it('fails outside of a page, as in a worker, unless storage and address are given', async () => {
    const { client } = stubGateway([]);
    for (const attempt of [client.beginSignIn(PROVIDER), client.completeSignIn()]) {
      expect(await rejection(attempt)).toBeInstanceOf(TypeError);
    }
  });

  it.each<[how: string, response: Respond, expected: object | true]>([
    ['completed', respond(200), true],
    ['refused', respond(400), { name: 'GatewayRequestError', status: 400 }],
    ['lost', lost, { name: 'GatewayRequestError', status: 0 }],
  ])(
    'is %s once for all that complete it at once, and before a session check',
    async (_, response, expected) => {
      const exchange = Promise.withResolvers<void>();
      const arrived = Promise.withResolvers<void>();
      const delayed: Respond = async (init) => {
        arrived.resolve();
        await exchange.promise;
        return response(init);
      };
      const tab = await begin([delayed, respond(200, {}, '{"authenticated":false}')]);
      const { page, client, calls, comeBack, addressOf, secrets } = tab;
      comeBack();
      const complete = () => client.completeSignIn().catch((error: unknown) => error);
      const all = [complete(), complete(), client.session()];
      await arrived.promise;
      expect(calls()).toEqual(['POST /api/auth/idp']);
      exchange.resolve();
      for (const outcome of (await Promise.all(all)).slice(0, 2)) {
        if (expected === true) expect(outcome).toBe(true);
        else {
          expect(outcome).toMatchObject(expected);
          expectNoSecrets(outcome, secrets);
        }
      }
      const again = await rejection(client.completeSignIn(addressOf('?code=CODE&state=STATE')));
      expect(again).toMatchObject({ name: 'SignInError', code: 'not_begun' });
      expect(calls()).toEqual(['POST /api/auth/idp', 'GET /api/auth/session']);
      expect(page.sessionStorage.length).toBe(0);
    },
  );
});

describe('a response to no sign-in of this tab', () => {
  it.each([
    ['a foreign state', '?code=CODE&state=foreign', INVALID],
    ['the start of the state', '?code=CODE&state=START', INVALID],
    ['a foreign issuer', '?code=CODE&state=STATE&iss=https://evil.test', INVALID],
    ['an error with a foreign state', '?error=access_denied&state=foreign', INVALID],
    ['an empty code', '?code=&state=STATE', INVALID],
    ['two codes', '?code=CODE&state=STATE&code=another', INVALID],
    ['two states', '?code=CODE&state=STATE&state=another', INVALID],
    ['tokens of the implicit flow', '?code=CODE&state=STATE&id_token=e.y.J', INVALID],
    ['a refusal', '?error=access_denied&error_description=CODE&error_uri=u&state=STATE', DENIED],
  ])('with %s is not used, ends the sign-in, and leaves the address', async (_, query, expected) => {
    const { page, client, sent, secrets, addressOf, comeBack } = await begin();
    comeBack(query);
    const error = await rejection(client.completeSignIn());
    expect(error).toMatchObject(expected);
    expectNoSecrets(error, secrets);
    expect(page.location.href.replace('?id_token=e.y.J', '')).toBe(PROVIDER.redirectUri);
    expect(page.sessionStorage.length).toBe(0);
    const late = await rejection(client.completeSignIn(addressOf('?code=CODE&state=STATE')));
    expect(late).toMatchObject({ name: 'SignInError', code: 'not_begun' });
    expect(sent).toEqual([]);
  });

  const PARTS = { state: 'x', codeVerifier: 'v', issuer: 'i', clientId: 'c' };
  const DAMAGED = Object.keys(PARTS).map((name) => JSON.stringify({ ...PARTS, [name]: 1 }));
  it.each(['no JSON', 'null', '[]', ...DAMAGED])('is refused after %p is stored', async (stored) => {
    const { page, client, sent, addressOf } = await begin();
    page.sessionStorage.setItem(STORAGE_KEY, stored);
    const error = await rejection(client.completeSignIn(addressOf('?code=CODE&state=x')));
    expect(error).toMatchObject({ name: 'SignInError', code: 'not_begun' });
    expectNoSecrets(error, [CODE]);
    expect([page.sessionStorage.length, sent]).toEqual([0, []]);
  });
});

describe('the address of a page that completes a sign-in', () => {
  it('loses what the identity provider added, at once, and keeps the rest and the history', async () => {
    const { page, client, comeBack } = await begin();
    const added = `code=CODE&state=STATE&iss=${PROVIDER.issuer}&session_state=s`;
    comeBack(`?theme=dark&${added}&listen=a%26b#part-2`);
    page.history.replaceState({ scroll: 120 }, '', page.location.href);
    const entries = page.history.length;
    const completed = client.completeSignIn();
    // Before any response, because a request of the page could send the code on.
    expect(page.location.href).toBe(`${PROVIDER.redirectUri}?theme=dark&listen=a%26b#part-2`);
    expect(await completed).toBe(true);
    expect([page.history.length, page.history.state]).toEqual([entries, { scroll: 120 }]);
    expect(await client.completeSignIn()).toBe(false);
  });

  it('is left as it is by a response that a pop-up has got', async () => {
    const { page, client, comeBack, addressOf } = await begin();
    comeBack('?code=gift');
    expect(await client.completeSignIn(addressOf('?code=CODE&state=STATE'))).toBe(true);
    expect(page.location.search).toBe('?code=gift');
  });

  it.each(['', '?code=x&y=a%20b#h', '?state=x', '?error=x', '?listen=1#state=x&code=y'])(
    'is left as it is when it is no response, as with %p',
    async (query) => {
      const { page, client, sent, comeBack } = await begin();
      comeBack(query);
      expect(await client.completeSignIn()).toBe(false);
      expect(page.location.href).toBe(PROVIDER.redirectUri + query);
      expect([page.sessionStorage.length, sent]).toEqual([1, []]);
    },
  );

  it.each([`/callback?code=${CODE}&state=x`, '', `http://[::1?code=${CODE}`])(
    'is not quoted when it is not absolute: %p',
    async (address) => {
      const { client, secrets } = await begin();
      const error = await rejection(client.completeSignIn(address));
      expect(error).toBeInstanceOf(TypeError);
      expectNoSecrets(error, secrets);
    },
  );
});
