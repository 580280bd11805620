import { describe, expect, it, onTestFinished } from 'bun:test';
import { createHash } from 'node:crypto';
import { Window } from 'happy-dom';
import type { IdentityProvider } from '../../../src/client/sign-in.ts';
import { readDocument, samplesIn } from '../../support/documents.ts';
import { createFolder } from '../../support/temporary-folder.ts';
import { ORIGIN } from '../../support/world.ts';
import { lost, PROVIDER, type Respond, rejection, respond, stubGateway } from './gateway-stub.ts';

const STORAGE_KEY = 'music-gateway.sign-in';
const CODE = 'the-code-that-nobody-may-see';
const INVALID = { name: 'SignInError', code: 'invalid_response' };
const DENIED = {
  name: 'SignInError',
  code: 'denied',
  message: 'The identity provider refused: access_denied',
};
const NOT_BEGUN = { name: 'SignInError', code: 'not_begun' };

/**
 * A tab that has begun a sign-in, whose objects the client finds as in a browser. In the addresses to which it comes
 * back, CODE and STATE stand for the code and the state.
 */
async function begin(responses: Respond | Respond[] = respond(200), demands: Partial<IdentityProvider> = {}) {
  const page = new Window({ url: `${ORIGIN}/` });
  onTestFinished(() => page.happyDOM.close());
  for (const name of ['sessionStorage', 'location', 'history'] as const) {
    Object.defineProperty(globalThis, name, { configurable: true, get: () => page[name] });
    onTestFinished(() => void Reflect.deleteProperty(globalThis, name));
  }
  const { client, sent } = stubGateway(responses);
  const asked = new URL(await client.beginSignIn({ ...PROVIDER, ...demands }));
  const { state = '', ...parameters } = Object.fromEntries(asked.searchParams);
  const { codeVerifier } = JSON.parse(page.sessionStorage.getItem(STORAGE_KEY) ?? '{}');
  const addressOf = (query: string) =>
    PROVIDER.redirectUri + query.replaceAll('CODE', CODE).replaceAll('STATE', state);
  return {
    ...{ page, client, sent, asked, state, parameters, addressOf },
    comeBack: (query: string) => page.happyDOM.setURL(addressOf(query)),
    calls: () => sent.map(({ call }) => call),
    /** Returns the outcome, also when it is an error, which must not contain code or verifier. */
    async complete(address?: string): Promise<unknown> {
      const outcome = await client.completeSignIn(address).catch((error: unknown) => error);
      for (const secret of [CODE, String(codeVerifier)])
        expect(Bun.inspect(outcome, { depth: 20 })).not.toContain(secret);
      return outcome;
    },
  };
}

describe('a sign-in', () => {
  it('asks for a code with PKCE, and posts it with the verifier of the challenge', async () => {
    const extra = { audience: 'https://api.test/', login_hint: 'ada' };
    const exchanged = new Response('{"ok":true}');
    const { page, asked, state, parameters, sent, calls, comeBack, complete } = await begin(() => exchanged, {
      authorizationEndpoint: `${PROVIDER.authorizationEndpoint}?tenant=a%26b&scope=all`,
      ...{ scope: 'openid', prompt: 'login', acrValues: 'mfa', maxAgeSeconds: 0 },
      extra: { ...extra, state: 'mine', response_type: 'token' },
    });
    const { code_challenge: challenge, ...plain } = parameters;
    expect(asked.origin + asked.pathname).toBe(PROVIDER.authorizationEndpoint);
    expect(asked.searchParams.size).toBe(Object.keys(parameters).length + 1);
    expect(plain).toEqual({
      ...{ response_type: 'code', client_id: 'studio', redirect_uri: PROVIDER.redirectUri },
      ...{ code_challenge_method: 'S256', scope: 'openid', prompt: 'login', acr_values: 'mfa', max_age: '0' },
      ...{ ...extra, tenant: 'a&b' },
    });
    // 32 bytes, in base64url.
    expect(state).toMatch(/^[\w-]{43}$/);
    expect(calls()).toEqual([]);

    comeBack('?code=CODE&state=STATE');
    expect(await complete()).toBe(true);
    expect([calls(), exchanged.bodyUsed]).toEqual([['POST /api/auth/idp'], true]);
    const { code, code_verifier: verifier, ...more } = JSON.parse(String(sent[0]?.init.body));
    expect([code, more, page.sessionStorage.length]).toEqual([CODE, {}, 0]);
    expect(verifier).toMatch(/^[\w.~-]{43,128}$/);
    expect(challenge).toBe(createHash('sha256').update(verifier).digest('base64url'));
  });

  it('has the parameters that the README names for a page without the client, new secrets each time', async () => {
    const { text } = await readDocument('src/client/README.md');
    const documented = /^ +https:\/\/.*\?(response_type=.*\n.*)$/m.exec(text)?.[1] ?? '';
    const named = Object.fromEntries(new URLSearchParams(documented.replace(/\s+/g, '')));
    const [first, second] = [await begin(), await begin()];
    expect(Object.keys(named).sort()).toEqual(['state', ...Object.keys(first.parameters)].sort());
    expect([named['scope'], 'openid profile']).toEqual(Array(2).fill(first.parameters['scope']));
    expect(first.state).not.toBe(second.state);
    expect(first.parameters['code_challenge']).not.toBe(second.parameters['code_challenge']);
  });

  it('has the challenge that the sample makes for a page without the client', async () => {
    await using folder = await createFolder();
    const sample = samplesIn(await readDocument('src/client/README.md'), {}).get('pkce.ts') ?? '';
    await Bun.write(`${folder.path}/pkce.ts`, sample);
    const { secret, challenge } = await import(`${folder.path}/pkce.ts`);
    const { asked, page } = await begin();
    const { codeVerifier } = JSON.parse(page.sessionStorage.getItem(STORAGE_KEY) ?? '{}');
    expect(await challenge(codeVerifier)).toBe(asked.searchParams.get('code_challenge'));
    const secrets = Array.from({ length: 20 }, secret);
    expect(new Set(secrets).size).toBe(20);
    for (const each of secrets) expect(each).toMatch(/^[\w-]{43}$/);
  });

  it('fails outside of a page, as in a worker, unless storage and address are given', async () => {
    const { client } = stubGateway([]);
    expect(await rejection(client.beginSignIn(PROVIDER))).toBeInstanceOf(TypeError);
    expect(await rejection(client.completeSignIn())).toBeInstanceOf(TypeError);
  });

  it.each<[how: string, response: Respond, outcome: unknown]>([
    ['completed', respond(200), true],
    ['refused', respond(400), { name: 'GatewayRequestError', status: 400 }],
    ['lost', lost, { name: 'GatewayRequestError', status: 0 }],
  ])('is %s once for all that complete it at once, and before a session check', async (...row) => {
    const [, response, outcome] = row;
    const exchange = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    const delayed: Respond = async (init) => {
      arrived.resolve();
      await exchange.promise;
      return response(init);
    };
    const check = respond(200, {}, '{"authenticated":false}');
    const { page, client, calls, comeBack, addressOf, complete } = await begin([delayed, check]);
    comeBack('?code=CODE&state=STATE');
    const { client: another } = stubGateway(check);
    const byAnother = () => another.completeSignIn().catch((error: unknown) => error);
    const all = [complete(), complete(), byAnother(), client.session()];
    await arrived.promise;
    expect(calls()).toEqual(['POST /api/auth/idp']);
    exchange.resolve();
    expect(await Promise.all(all)).toMatchObject([outcome, outcome, outcome, { authenticated: false }]);
    expect(await complete(addressOf('?code=CODE&state=STATE'))).toMatchObject(NOT_BEGUN);
    expect(calls()).toEqual(['POST /api/auth/idp', 'GET /api/auth/session']);
    expect(page.sessionStorage.length).toBe(0);
  });
});

describe('an address', () => {
  it.each([
    ['a foreign state', '?code=CODE&state=foreign', INVALID],
    ['a foreign issuer', '?code=CODE&state=STATE&iss=https://evil.test', INVALID],
    ['an error with a foreign state', '?error=access_denied&state=foreign', INVALID],
    ['an empty code', '?code=&state=STATE', INVALID],
    ['two codes', '?code=CODE&state=STATE&code=another', INVALID],
    ['two states', '?code=CODE&state=STATE&state=another', INVALID],
    ['tokens of the implicit flow', '?code=CODE&state=STATE&id_token=e.y.J', INVALID],
    ['a refusal', '?error=access_denied&error_description=CODE&error_uri=u&state=STATE', DENIED],
  ])('with %s is not used, ends the sign-in, and is cleaned', async (_, query, expected) => {
    const { page, calls, addressOf, comeBack, complete } = await begin();
    comeBack(query);
    expect(await complete()).toMatchObject(expected);
    expect(page.location.href.replace('?id_token=e.y.J', '')).toBe(PROVIDER.redirectUri);
    expect(page.sessionStorage.length).toBe(0);
    expect(await complete(addressOf('?code=CODE&state=STATE'))).toMatchObject(NOT_BEGUN);
    expect(calls()).toEqual([]);
  });

  const PARTS = { state: 'x', codeVerifier: 'v', issuer: 'i', clientId: 'c' };
  const DAMAGED = Object.keys(PARTS).map((name) => JSON.stringify({ ...PARTS, [name]: 1 }));
  it.each(['no JSON', 'null', '[]', ...DAMAGED])('is refused after %p is stored', async (stored) => {
    const { page, calls, addressOf, complete } = await begin();
    page.sessionStorage.setItem(STORAGE_KEY, stored);
    expect(await complete(addressOf('?code=CODE&state=x'))).toMatchObject(NOT_BEGUN);
    expect([page.sessionStorage.length, calls()]).toEqual([0, []]);
  });

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

  it.each([
    ['no parameters', '', false],
    ['no state', '?code=x&y=a%20b#h', false],
    ['neither code nor error', '?state=x', false],
    ['no state of an error', '?error=x', false],
    ['parameters of the page itself', '?listen=1#state=x&code=y', false],
    ['no response, for a pop-up has got it', '?code=gift', true],
  ])('with %s is left as it is', async (_, query, isInPopUp) => {
    const { page, calls, comeBack, addressOf, complete } = await begin();
    comeBack(query);
    const given = isInPopUp ? addressOf('?code=CODE&state=STATE') : undefined;
    expect(await complete(given)).toBe(isInPopUp);
    expect(page.location.href).toBe(PROVIDER.redirectUri + query);
    expect([page.sessionStorage.length, calls().length]).toEqual(isInPopUp ? [0, 1] : [1, 0]);
  });

  it.each([`/callback?code=${CODE}&state=x`, '', `http://[::1?code=${CODE}`])(
    'that is not absolute is not quoted: %p',
    async (address) => {
      const { complete } = await begin();
      expect(await complete(address)).toBeInstanceOf(TypeError);
    },
  );
});
