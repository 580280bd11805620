import { beforeAll, describe, expect, it } from 'bun:test';
import type { Window } from 'happy-dom';
import { startWorld, type World } from '../../support/world.ts';
import { bundle, CLIENT } from './bundle.ts';
import { clientIn, openPage, PROVIDER, scriptSignIn } from './page.ts';

let script = '';
beforeAll(async () => {
  const entry = `import { createGatewayClient } from '${CLIENT}'; Object.assign(globalThis, { createGatewayClient });`;
  script = (await bundle(entry)).code;
});

/**
 * A tab in which a sign-in was begun, and which has come back with this query and hash; its scripts have run, with
 * the page's own fetch, storage, location and history.
 */
async function comeBack(world: World, path: (state: string) => string): Promise<Window> {
  scriptSignIn(world);
  const page = openPage();
  const address = await clientIn(page, world).beginSignIn(PROVIDER);
  page.happyDOM.setURL(new URL(path(address.searchParams.get('state') ?? ''), PROVIDER.redirectUri).href);
  page.eval(`${script}; client = createGatewayClient({ baseUrl: '${world.url}' });`);
  return page;
}

/** The outcome of this code in the page: a value, or an error as `name: code`. */
async function inPage(page: Window, code: string): Promise<unknown> {
  return page.eval(`(${code}).catch(({ name, code, status }) => name + ': ' + (code ?? status))`);
}

describe('the address of a page that completes a sign-in', () => {
  it('loses what the identity provider added, at once, and keeps the rest and the history', async () => {
    await using world = startWorld();
    const added = `iss=${PROVIDER.issuer}&session_state=s&`;
    const rest = 'listen=a%26b#part-2';
    const page = await comeBack(
      world,
      (state) => `/callback?theme=dark&code=c-1&state=${state}&${added}${rest}`,
    );
    const cleaned = `${PROVIDER.redirectUri}?theme=dark&${rest}`;
    page.eval(`history.replaceState({ scroll: 120 }, '', location.href)`);
    const entries = page.history.length;
    const completed = inPage(page, 'client.completeSignIn()');
    // Before any response, because a request of the page could send the code on.
    expect(page.location.href).toBe(cleaned);
    expect(await completed).toBe(true);
    expect(page.location.href).toBe(cleaned);
    expect(page.history.length).toBe(entries);
    expect(page.history.state).toEqual({ scroll: 120 });
    expect(page.sessionStorage.length).toBe(0);
    expect(await inPage(page, 'client.completeSignIn()')).toBe(false);
    world.upstream.on('GET /v1/me', () => Response.json({ name: 'Ada' }));
    expect(await inPage(page, 'client.session().then(({ profile }) => profile.name)')).toBe('Ada');
    expect(JSON.stringify(world.upstream.last('POST /oauth/token').body)).toContain('code=c-1');
  });

  it('is exchanged once when it is completed twice at once, and the session check waits for it', async () => {
    await using world = startWorld();
    const page = await comeBack(world, (state) => `/callback?code=c-1&state=${state}`);
    world.upstream.on('GET /v1/me', () => Response.json({ name: 'Ada' }));
    const once = 'Promise.all([client.completeSignIn(), client.completeSignIn(), client.session()])';
    expect(await inPage(page, once)).toEqual([true, true, { authenticated: true, profile: { name: 'Ada' } }]);
    expect(world.upstream.calls).toEqual(['POST /oauth/token', 'POST /v1/auth/idp', 'GET /v1/me']);
  });

  it('has one refusal for all who complete it, and the session check goes on without it', async () => {
    await using world = startWorld();
    const page = await comeBack(world, (state) => `/callback?code=c-1&state=${state}`);
    world.upstream.on('POST /oauth/token', () => Response.json({ error: 'invalid_grant' }, { status: 400 }));
    const complete = `client.completeSignIn().catch(({ name }) => name)`;
    expect(await inPage(page, `Promise.all([${complete}, ${complete}, client.session()])`)).toEqual([
      'GatewayRequestError',
      'GatewayRequestError',
      { authenticated: false },
    ]);
    expect(world.upstream.calls).toEqual(['POST /oauth/token']);
    expect(await inPage(page, 'client.completeSignIn()')).toBe(false);
  });

  it.each([
    ['a refusal', (state: string) => `?error=access_denied&error_description=d&error_uri=u&state=${state}`],
    ['a foreign state', () => '?code=c-1&state=foreign'],
  ])('is cleaned after %s too', async (_, query) => {
    await using world = startWorld();
    const page = await comeBack(world, (state) => `/callback${query(state)}`);
    expect(await inPage(page, 'client.completeSignIn()')).toMatch(/^SignInError: (denied|invalid_response)$/);
    expect(page.location.href).toBe(PROVIDER.redirectUri);
    expect(page.sessionStorage.length).toBe(0);
  });

  it('is left alone when it is not a response', async () => {
    await using world = startWorld();
    const page = await comeBack(world, () => '/callback?code=gift&x=a%20b#h');
    expect(await inPage(page, 'client.completeSignIn()')).toBe(false);
    expect(page.location.href).toBe(`${PROVIDER.redirectUri}?code=gift&x=a%20b#h`);
    expect(page.sessionStorage.length).toBe(1);
  });

  it('is left alone when the response came another way, as from a pop-up', async () => {
    await using world = startWorld();
    const states: string[] = [];
    const page = await comeBack(world, (state) => {
      states.push(state);
      return '/library?code=gift';
    });
    const response = `https://elsewhere.test/callback?code=c-1&state=${states[0]}`;
    expect(await inPage(page, `client.completeSignIn('${response}')`)).toBe(true);
    expect(page.location.pathname + page.location.search).toBe('/library?code=gift');
  });
});
