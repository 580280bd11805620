import { expect, it } from 'bun:test';
import type { Environment } from '../../src/gateway/settings/environment-reader.ts';
import { describeInChromium, type Visit } from '../support/chromium.ts';
import { type ForeignSite, openForeignSite } from '../support/foreign-site.ts';
import { startWorld } from '../support/world.ts';

/** For a browser these are one site, and secure although they are http. */
const SITE = 'music.localhost';
const HARDENED = { COOKIE_PREFIX: '__Host-Http-', COOKIE_SAME_SITE: 'strict', COOKIE_SECURE: 'true' };
const MODELS = '/api/music/models';
const LIBRARY = '/api/upstream/v1/library';

type Browsing = Awaited<ReturnType<typeof browse>>;

/** The code says who the user is. Each response of the upstream names the user and may be cached for an hour. */
async function browse(visit: Visit, environment: Environment = {}) {
  await using stack = new AsyncDisposableStack();
  const [app, other] = [`studio.${SITE}`, `blog.${SITE}`].map(
    (host): ForeignSite => stack.use(openForeignSite(host)),
  );
  const world = stack.use(startWorld({ ALLOWED_ORIGINS: app?.origin, ...environment }));
  const ofUser = ({ headers }: { headers: Headers }) =>
    Response.json(
      { user: headers.get('authorization')?.replace('Bearer access-', '') },
      { headers: { 'cache-control': 'max-age=3600' } },
    );
  world.upstream
    .on('POST /oauth/token', ({ body }) =>
      Response.json({ access_token: new URLSearchParams(body).get('code') }),
    )
    .on('POST /v1/auth/idp', ({ body }) => {
      const { access_token: user } = JSON.parse(body);
      return Response.json({ access_token: `access-${user}`, refresh_token: `refresh-${user}` });
    })
    .on('POST /v1/auth/logout', () => new Response())
    .on('GET /v1/me', ofUser)
    .on('GET /v1/models', ofUser)
    .on('GET /v1/library', ofUser);
  const visitor = stack.use(await visit());
  // What the browser logs for each 401.
  visitor.tolerateProblem(/status of 401/);
  const studio = await visitor.open(`${app?.origin}/`);
  const blog = await visitor.open(`${other?.origin}/`);
  const gatewayHost = `api.${SITE}`;
  const gatewayUrl = `http://${gatewayHost}:${world.port}`;
  const browsing = stack.move();
  return {
    world,
    /** A page of another host of the site, which an attacker controls. */
    blog,
    gatewayHost,
    /** What the web app gets from the gateway: the status and the body. */
    call: (path: string, json?: unknown): Promise<string> =>
      studio.evaluate(
        async ({ url, body }) => {
          const headers = { 'content-type': 'application/json' };
          const post = body === undefined ? {} : { method: 'POST', headers, body };
          const response = await fetch(url, { credentials: 'include', ...post });
          return `${response.status} ${await response.text()}`;
        },
        { url: gatewayUrl + path, body: json === undefined ? undefined : JSON.stringify(json) },
      ),
    cookieNames: async () => {
      const cookies = await visitor.context.cookies(gatewayUrl);
      return cookies.map(({ name, domain }) => `${name} ${domain}`).toSorted();
    },
    [Symbol.asyncDispose]: () => browsing.disposeAsync(),
  };
}

function signIn({ call }: Browsing, user: string): Promise<string> {
  return call('/api/auth/idp', { code: user, code_verifier: 'v'.repeat(43) });
}

/** What the attacker's page can do with the cookies of an account of the attacker's own. */
function toss({ blog }: Browsing, prefix = ''): Promise<void> {
  return blog.evaluate(
    ({ site, prefix }) => {
      for (const name of ['access', 'refresh']) {
        for (const path of ['/', '/api', '/api/upstream/v1']) {
          const attributes = `Domain=${site}; Path=${path}${prefix && '; Secure'}`;
          // biome-ignore lint/suspicious/noDocumentCookie: it is the attack.
          document.cookie = `${prefix}svc_music_${name}=${name}-mallory; ${attributes}`;
        }
      }
    },
    { site: SITE, prefix },
  );
}

const OK = '200 {"ok":true}';
const SIGNED_OUT = '200 {"authenticated":false}';

describeInChromium('cookies that another host of the site sets', (visit) => {
  it('never make a signed-in user work in the attacker’s account', async () => {
    await using browsing = await browse(visit);
    const { world, call, gatewayHost, cookieNames } = browsing;
    expect(await signIn(browsing, 'ada')).toBe(OK);
    expect(await call('/api/auth/session')).toBe('200 {"user":"ada"}');

    await toss(browsing);
    const before = world.upstream.calls.length;
    expect(await call('/api/auth/session')).toBe(SIGNED_OUT);
    for (const path of [MODELS, LIBRARY]) expect(await call(path)).toStartWith('401 {"error":');
    expect(await call('/api/music/generate', {})).toStartWith('401 {"error":');
    expect(await world.line({ route: MODELS })).toMatchObject({ reason: 'sessionCookieTwice' });
    expect(world.upstream.calls).toHaveLength(before);

    expect(await signIn(browsing, 'ada')).toBe(OK);
    expect(await call('/api/auth/session')).toBe(SIGNED_OUT);
    expect(await call(LIBRARY)).toStartWith('401 {"error":');
    expect(world.upstream.received.map(({ headers }) => headers.get('authorization')).join()).not.toContain(
      'mallory',
    );

    // A sign-out does not touch them, and does not reach the upstream.
    expect(await cookieNames()).toContain(`svc_music_access ${gatewayHost}`);
    expect(await call('/api/auth/logout', {})).toBe(OK);
    expect(await cookieNames()).not.toContain(`svc_music_access ${gatewayHost}`);
    expect(await cookieNames()).toContain(`svc_music_access .${SITE}`);
    expect(world.upstream.calls).not.toContain('POST /v1/auth/logout');
  });

  it.each(['__Host-', '__Host-Http-'])('are refused by the browser with COOKIE_PREFIX=%s', async (prefix) => {
    await using browsing = await browse(visit, { ...HARDENED, COOKIE_PREFIX: prefix });
    const { world, call, cookieNames, gatewayHost } = browsing;
    const own = ['access', 'refresh'].map((name) => `${prefix}svc_music_${name} ${gatewayHost}`);
    await toss(browsing, prefix);
    expect(await cookieNames()).toEqual([]);
    expect(await call('/api/auth/session')).toBe(SIGNED_OUT);

    expect(await signIn(browsing, 'ada')).toBe(OK);
    expect(await cookieNames()).toEqual(own);
    await toss(browsing, prefix);
    // The browser sets them without the prefix, and the gateway ignores them.
    await toss(browsing);
    expect(await cookieNames()).toEqual(expect.arrayContaining(own));
    for (const path of ['/api/auth/session', MODELS, LIBRARY])
      expect(await call(path)).toBe('200 {"user":"ada"}');

    expect(await call('/api/auth/logout', {})).toBe(OK);
    expect(world.upstream.last('POST /v1/auth/logout').body).toBe('{"refresh_token":"refresh-ada"}');
    expect(await call('/api/auth/session')).toBe(SIGNED_OUT);
  });
});

describeInChromium('a cookie of the gateway', (visit) => {
  it.each([
    ['__Host-', ['__Host-svc_music_access=scripted']],
    ['__Host-Http-', []],
  ])('%s can be set by a script on its own host: %j', async (prefix, expected) => {
    await using visitor = await visit();
    await using own = openForeignSite(`api.${SITE}`);
    const page = await visitor.open(`${own.origin}/`);
    const found = await page.evaluate((name) => {
      // biome-ignore lint/suspicious/noDocumentCookie: it is the attack.
      document.cookie = `${name}=scripted; Secure; Path=/`;
      return document.cookie;
    }, `${prefix}svc_music_access`);
    expect(found.split('; ').filter(Boolean)).toEqual(expected);
  });
});

describeInChromium('two accounts in one browser', (visit) => {
  it('see nothing of each other from the cache', async () => {
    await using browsing = await browse(visit);
    const { world, call } = browsing;
    const PATHS = ['/api/auth/session', MODELS, LIBRARY];
    for (const user of ['ada', 'grace', 'ada']) {
      expect(await signIn(browsing, user)).toBe(OK);
      for (const path of [...PATHS, ...PATHS])
        expect([path, await call(path)]).toEqual([path, `200 {"user":"${user}"}`]);
      expect(await call('/api/auth/logout', {})).toBe(OK);
      expect(await call('/api/auth/session')).toBe(SIGNED_OUT);
      for (const path of [MODELS, LIBRARY]) expect(await call(path)).toStartWith('401 {"error":');
    }
    // The cache did serve it, to the user who was allowed to see it.
    expect(world.upstream.calls.filter((each) => each === 'GET /v1/library').length).toBeLessThan(6);
  });
});
