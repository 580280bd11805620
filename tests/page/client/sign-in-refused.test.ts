import { describe, expect, it } from 'bun:test';
import { type Respond, rejection, respond, stubGateway } from './gateway-stub.ts';
import { openPage, PROVIDER } from './page.ts';

const STORAGE_KEY = 'music-gateway.sign-in';
const CODE = 'the-code-that-nobody-may-see';
const INVALID = { name: 'SignInError', code: 'invalid_response' };
const DENIED = {
  name: 'SignInError',
  code: 'denied',
  message: 'The identity provider refused: access_denied',
};

/** A tab that has begun a sign-in, and the verifier that it remembers. */
async function begin(response: Respond = respond(200)) {
  const { sessionStorage: storage } = openPage();
  const { client, sent } = stubGateway([response], { storage });
  const state = (await client.beginSignIn(PROVIDER)).searchParams.get('state') ?? '';
  const { codeVerifier } = JSON.parse(storage.getItem(STORAGE_KEY) ?? '{}');
  expect(codeVerifier).toMatch(/^[\w-]{43}$/);
  return { client, sent, storage, state, secrets: [CODE, String(codeVerifier)] };
}

/** A response of the provider, in which these words stand for the code, the state, and its beginning. */
function redirect(query: string, state = ''): string {
  const words: Record<string, string> = { CODE, STATE: state, START: state.slice(0, -1) };
  return `${PROVIDER.redirectUri}?${query.replace(/[A-Z]{4,}/g, (word) => words[word] ?? word)}`;
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

describe('a response to no sign-in of this tab', () => {
  it.each([
    ['a foreign state', 'code=CODE&state=foreign', INVALID],
    ['the start of the state', 'code=CODE&state=START', INVALID],
    ['a foreign issuer', 'code=CODE&state=STATE&iss=https://evil.test', INVALID],
    ['an error with a foreign state', 'error=access_denied&state=foreign', INVALID],
    ['an empty code', 'code=&state=STATE', INVALID],
    ['two codes', 'code=CODE&state=STATE&code=another', INVALID],
    ['two states', 'code=CODE&state=STATE&state=another', INVALID],
    ['tokens of the implicit flow', 'code=CODE&state=STATE&id_token=e.y.J', INVALID],
    ['a refusal', 'error=access_denied&error_description=CODE&state=STATE', DENIED],
  ])('with %s is not used, and ends the sign-in', async (_, query, expected) => {
    const { client, storage, sent, state, secrets } = await begin();
    const error = await rejection(client.completeSignIn(redirect(query, state)));
    expect(error).toMatchObject(expected);
    expectNoSecrets(error, secrets);
    expect(storage.length).toBe(0);
    const late = await rejection(client.completeSignIn(redirect('code=CODE&state=STATE', state)));
    expect(late).toMatchObject({ name: 'SignInError', code: 'not_begun' });
    expect(sent).toEqual([]);
  });

  const PARTS = { state: 'x', codeVerifier: 'v', issuer: 'i', clientId: 'c' };
  const DAMAGED = Object.keys(PARTS).map((name) => JSON.stringify({ ...PARTS, [name]: 1 }));
  it.each([undefined, 'no JSON', 'null', '[]', ...DAMAGED])(
    'is refused after %p is stored',
    async (stored) => {
      const { sessionStorage: storage } = openPage();
      if (stored !== undefined) storage.setItem(STORAGE_KEY, stored);
      const { client, sent } = stubGateway([], { storage });
      const error = await rejection(client.completeSignIn(redirect('code=CODE&state=x')));
      expect(error).toMatchObject({ name: 'SignInError', code: 'not_begun' });
      expectNoSecrets(error, [CODE]);
      expect([storage.length, sent]).toEqual([0, []]);
    },
  );
});

describe('an address that is not a response', () => {
  it.each(['', '?code=x', '?state=x', '?error=x', '?listen=1#state=x&code=y'])(
    'as /%s is left',
    async (query) => {
      const { client, storage, sent } = await begin();
      expect(await client.completeSignIn(PROVIDER.redirectUri + query)).toBe(false);
      expect([storage.length, sent]).toEqual([1, []]);
    },
  );

  it.each([`/callback?code=${CODE}&state=x`, '', `http://[::1?code=${CODE}`])(
    'is not quoted: %p',
    async (address) => {
      const { client, secrets } = await begin();
      const error = await rejection(client.completeSignIn(address));
      expect(error).toBeInstanceOf(TypeError);
      expectNoSecrets(error, secrets);
    },
  );
});

describe('a sign-in at the gateway', () => {
  it.each<[how: string, response: Respond, status: number | undefined]>([
    ['is refused', respond(400), 400],
    ['gets no response', () => Promise.reject(new TypeError('lost')), 0],
    ['is completed', respond(200), undefined],
  ])('is over when it %s, and is not repeated', async (_, response, status) => {
    const { client, storage, sent, state, secrets } = await begin(response);
    const address = redirect(`code=CODE&state=STATE&iss=${PROVIDER.issuer}`, state);
    const outcome = await client.completeSignIn(address).catch((error: unknown) => error);
    if (status === undefined) expect(outcome).toBe(true);
    else {
      expect(outcome).toMatchObject({ name: 'GatewayRequestError', status });
      expectNoSecrets(outcome, secrets);
    }
    expect(await rejection(client.completeSignIn(address))).toMatchObject({ code: 'not_begun' });
    expect([storage.length, sent.length]).toEqual([0, 1]);
  });
});
