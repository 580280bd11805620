import { beforeAll, describe, expect, it } from 'bun:test';
import { createHash } from 'node:crypto';
import type { Window } from 'happy-dom';
import { startWorld, type World } from '../../support/world.ts';
import { bundle, CLIENT } from './bundle.ts';
import { rejection, stubGateway } from './gateway-stub.ts';
import { clientIn, openPage, PROVIDER, scriptSignIn } from './page.ts';

describe('a sign-in', () => {
  it('asks for a code with PKCE, and posts it with the verifier of the challenge', async () => {
    const { sessionStorage: storage } = openPage();
    const { client, sent } = stubGateway([() => new Response()], { storage });
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
    const next = stubGateway([() => new Response()], { storage });
    expect(await next.client.completeSignIn(`${PROVIDER.redirectUri}?code=c-1&state=${state}`)).toBe(true);
    expect(next.sent.map(({ call }) => call)).toEqual(['POST /api/auth/idp']);
    const { code, code_verifier: verifier, ...more } = JSON.parse(String(next.sent[0]?.init.body));
    expect([code, more, storage.length]).toEqual(['c-1', {}, 0]);
    expect(verifier).toMatch(/^[\w.~-]{43,128}$/);
    expect(challenge).toBe(createHash('sha256').update(verifier).digest('base64url'));
    const second = (await client.beginSignIn(PROVIDER)).searchParams;
    expect([second.get('state') === state, second.get('code_challenge') === challenge]).toEqual([
      false,
      false,
    ]);
  });

  it('fails outside of a page, as in a worker, unless storage and address are given', async () => {
    const { client } = stubGateway([]);
    for (const attempt of [client.beginSignIn(PROVIDER), client.completeSignIn()]) {
      expect(await rejection(attempt)).toBeInstanceOf(TypeError);
    }
  });
});

describe('the address of a page that completes a sign-in', () => {
  let script = '';
  beforeAll(async () => {
    const entry = `import { createGatewayClient } from '${CLIENT}'; Object.assign(globalThis, { createGatewayClient });`;
    script = (await bundle(entry)).code;
  });

  /** A tab that has come back to this path after it began a sign-in; its scripts have run, with the page's own objects. */
  async function comeBack(world: World, path = '/callback?code=c-1&state=STATE') {
    scriptSignIn(world);
    world.upstream.on('GET /v1/me', () => Response.json({ name: 'Ada' }));
    const page = openPage();
    const { searchParams } = await clientIn(page, world).beginSignIn(PROVIDER);
    const state = searchParams.get('state') ?? '';
    page.happyDOM.setURL(new URL(path.replace('STATE', state), PROVIDER.redirectUri).href);
    page.eval(`${script}; client = createGatewayClient({ baseUrl: '${world.url}' });`);
    return { page, state };
  }

  /** The outcome of this code in the page: a value, or the error's name and code. */
  async function inPage(page: Window, code: string): Promise<unknown> {
    return page.eval(`(${code}).catch(({ name, code, status }) => name + ': ' + (code ?? status))`);
  }
  const complete = `client.completeSignIn().catch(({ name }) => name)`;
  const allAtOnce = `Promise.all([${complete}, ${complete}, client.session()])`;

  it('loses what the identity provider added, at once, and keeps the rest and the history', async () => {
    await using world = startWorld();
    const added = `code=c-1&state=STATE&iss=${PROVIDER.issuer}&session_state=s`;
    const { page } = await comeBack(world, `/callback?theme=dark&${added}&listen=a%26b#part-2`);
    page.eval(`history.replaceState({ scroll: 120 }, '', location.href)`);
    const entries = page.history.length;
    const completed = inPage(page, 'client.completeSignIn()');
    // Before any response, because a request of the page could send the code on.
    expect(page.location.href).toBe(`${PROVIDER.redirectUri}?theme=dark&listen=a%26b#part-2`);
    expect(await completed).toBe(true);
    expect([page.history.length, page.history.state]).toEqual([entries, { scroll: 120 }]);
    expect(await inPage(page, 'client.completeSignIn()')).toBe(false);
  });

  it('is exchanged once when it is completed twice at once, and the session check waits for it', async () => {
    await using world = startWorld();
    const { page } = await comeBack(world);
    const session = { authenticated: true, profile: { name: 'Ada' } };
    expect(await inPage(page, allAtOnce)).toEqual([true, true, session]);
    expect(world.upstream.calls).toEqual(['POST /oauth/token', 'POST /v1/auth/idp', 'GET /v1/me']);
  });

  it('has one refusal for all that complete it, and the session check goes on without it', async () => {
    await using world = startWorld();
    const { page } = await comeBack(world);
    world.upstream.on('POST /oauth/token', () => Response.json({ error: 'invalid_grant' }, { status: 400 }));
    const refused = 'GatewayRequestError';
    expect(await inPage(page, allAtOnce)).toEqual([refused, refused, { authenticated: false }]);
    expect(world.upstream.calls).toEqual(['POST /oauth/token']);
  });

  const DENIED = 'error=access_denied&error_description=d&error_uri=u';
  const ELSEWHERE = 'https://elsewhere.test/?code=c-1&state=STATE';
  it.each([
    ['a refusal', `?${DENIED}&state=STATE`, '', '', 'SignInError: denied'],
    ['a foreign state', '?code=c-1&state=foreign', '', '', 'SignInError: invalid_response'],
    ['no response', '?code=gift&x=a%20b#h', '', '?code=gift&x=a%20b#h', false],
    ['a response from a pop-up', '?code=gift', ELSEWHERE, '?code=gift', true],
  ])('is cleaned of %s, and of nothing else', async (_, before, response, after, outcome) => {
    await using world = startWorld();
    const { page, state } = await comeBack(world, `/callback${before}`);
    const given = response && `'${response.replace('STATE', state)}'`;
    expect(await inPage(page, `client.completeSignIn(${given})`)).toBe(outcome);
    expect(page.location.href).toBe(PROVIDER.redirectUri + after);
    expect(page.sessionStorage.length).toBe(outcome === false ? 1 : 0);
  });
});
