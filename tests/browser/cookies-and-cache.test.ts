import { expect, it } from 'bun:test';
import type { Environment } from '../../src/gateway/settings/environment-reader.ts';
import { startWorld } from '../support/world.ts';
import { describeInChromium, type Visit } from './chromium.ts';
import { openForeignSite } from './foreign-site.ts';

/** For a browser these are one site, and secure although they are http. */
const SITE = 'music.localhost';
const HARDENED = { COOKIE_PREFIX: '__Host-Http-', COOKIE_SAME_SITE: 'strict', COOKIE_SECURE: 'true' };
const PATHS = ['/api/auth/session', '/api/music/models', '/api/upstream/v1/library'] as const;

type Browsing = Awaited<ReturnType<typeof browse>>;

/** The code says who the user is. Each response of the upstream names the user and may be cached for an hour. */
async function browse(visit: Visit, environment: Environment = {}) {
  await using stack = new AsyncDisposableStack();
  const app = stack.use(openForeignSite(`studio.${SITE}`));
  const other = stack.use(openForeignSite(`blog.${SITE}`));
  const world = stack.use(startWorld({ ALLOWED_ORIGINS: app.origin, ...environment }));
  world.upstream
    .on('POST /oauth/token', ({ body }) =>
      Response.json({ access_token: new URLSearchParams(body).get('code') }),
    )
    .on('POST /v1/auth/idp', ({ body }) => {
      const { access_token: user } = JSON.parse(body);
      return Response.json({ access_token: `access-${user}`, refresh_token: `refresh-${user}` });
    })
    .on('POST /v1/auth/logout', () => new Response());
  for (const call of ['GET /v1/me', 'GET /v1/models', 'GET /v1/library'])
    world.upstream.on(call, ({ headers }) => {
      const user = headers.get('authorization')?.replace('Bearer access-', '');
      return Response.json({ user }, { headers: { 'cache-control': 'max-age=3600' } });
    });
  const visitor = stack.use(await visit());
  // What the browser logs for each 401.
  visitor.tolerateProblem(/status of 401/);
  const studio = await visitor.open(`${app.origin}/`);
  const blog = await visitor.open(`${other.origin}/`);
  const gatewayHost = `api.${SITE}`;
  const gatewayUrl = `http://${gatewayHost}:${world.port}`;
  /** What the web app gets from the gateway: the status and the body. */
  const call = (path: string, json?: unknown): Promise<string> =>
    studio.evaluate(
      async ({ url, body }) => {
        const headers = { 'content-type': 'application/json' };
        const post = body === undefined ? {} : { method: 'POST', headers, body };
        const response = await fetch(url, { credentials: 'include', ...post });
        return `${response.status} ${await response.text()}`;
      },
      { url: gatewayUrl + path, body: json === undefined ? undefined : JSON.stringify(json) },
    );
  const browsing = stack.move();
  return {
    ...{ world, gatewayHost, call },
    /** A page of another host of the site, which an attacker controls. */
    blog,
    signIn: (user: string) => call('/api/auth/idp', { code: user, code_verifier: 'v'.repeat(43) }),
    /** What the web app gets from each path, and from two of them when nobody is signed in. */
    callAll: () => Promise.all(PATHS.map((path) => call(path))),
    async cookieNames() {
      const cookies = await visitor.context.cookies(gatewayUrl);
      return cookies.map(({ name, domain }) => `${name} ${domain}`).toSorted();
    },
    [Symbol.asyncDispose]: () => browsing.disposeAsync(),
  };
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
const REFUSED = expect.stringMatching(/^401 \{"error":/);
const SIGNED_OUT = ['200 {"authenticated":false}', REFUSED, REFUSED];
const responsesTo = (user: string) => PATHS.map(() => `200 {"user":"${user}"}`);

describeInChromium('cookies that another host of the site sets', (visit) => {
  it('never make a signed-in user work in the attacker’s account', async () => {
    await using browsing = await browse(visit);
    const { world, call, callAll, signIn, gatewayHost, cookieNames } = browsing;
    expect(await signIn('ada')).toBe(OK);
    expect(await call(PATHS[0])).toBe('200 {"user":"ada"}');
    await toss(browsing);
    const before = world.upstream.calls.length;
    expect(await callAll()).toEqual(SIGNED_OUT);
    expect(await call('/api/music/generate', {})).toEqual(REFUSED);
    expect(await world.line({ route: PATHS[1] })).toMatchObject({ reason: 'sessionCookieTwice' });
    expect(world.upstream.calls).toHaveLength(before);

    expect(await signIn('ada')).toBe(OK);
    expect(await callAll()).toEqual(SIGNED_OUT);
    const authorizations = world.upstream.received.map(({ headers }) => headers.get('authorization'));
    expect(authorizations.join()).not.toContain('mallory');
    // A sign-out does not touch them, and does not reach the upstream.
    expect(await cookieNames()).toContain(`svc_music_access ${gatewayHost}`);
    expect(await call('/api/auth/logout', {})).toBe(OK);
    expect(await cookieNames()).not.toContain(`svc_music_access ${gatewayHost}`);
    expect(await cookieNames()).toContain(`svc_music_access .${SITE}`);
    expect(world.upstream.calls).not.toContain('POST /v1/auth/logout');
  });

  it.each([
    ['__Host-', 'can'],
    ['__Host-Http-', 'cannot'],
  ])(
    'are refused by the browser with COOKIE_PREFIX=%s, which a script of the own host %s set',
    async (prefix, can) => {
      await using browsing = await browse(visit, { ...HARDENED, COOKIE_PREFIX: prefix });
      const { world, call, callAll, signIn, cookieNames, gatewayHost, blog } = browsing;
      const own = ['access', 'refresh'].map((name) => `${prefix}svc_music_${name} ${gatewayHost}`);
      await toss(browsing, prefix);
      expect(await cookieNames()).toEqual([]);
      expect(await callAll()).toEqual(SIGNED_OUT);

      expect(await signIn('ada')).toBe(OK);
      expect(await cookieNames()).toEqual(own);
      await toss(browsing, prefix);
      // The browser sets them without the prefix, and the gateway ignores them.
      await toss(browsing);
      expect(await cookieNames()).toEqual(expect.arrayContaining(own));
      expect(await callAll()).toEqual(responsesTo('ada'));
      expect(await call('/api/auth/logout', {})).toBe(OK);
      expect(world.upstream.last('POST /v1/auth/logout').body).toBe('{"refresh_token":"refresh-ada"}');
      expect(await call(PATHS[0])).toBe(`${SIGNED_OUT[0]}`);
      const found = await blog.evaluate((name) => {
        // biome-ignore lint/suspicious/noDocumentCookie: it is the attack.
        document.cookie = `${name}=scripted; Secure; Path=/`;
        return document.cookie.includes(name) ? 'can' : 'cannot';
      }, `${prefix}svc_music_access`);
      expect(found).toBe(can);
    },
  );
});

describeInChromium('the browser’s cache', (visit) => {
  it('keeps nothing of one account for the next one', async () => {
    await using browsing = await browse(visit);
    const { world, call, callAll, signIn } = browsing;
    for (const user of ['ada', 'grace', 'ada']) {
      expect(await signIn(user)).toBe(OK);
      for (const _ of ['fetched', 'cached']) expect(await callAll()).toEqual(responsesTo(user));
      expect(await call('/api/auth/logout', {})).toBe(OK);
      expect(await callAll()).toEqual(SIGNED_OUT);
    }
    // The cache did serve it, to the user who was allowed to see it.
    expect(world.upstream.calls.filter((each) => each === 'GET /v1/library').length).toBeLessThan(6);
  });

  it.each([
    ['of a session', '/api/upstream/v1/genres', 'GET /v1/genres'],
    ['that is public', '/api/upstream/v1/music/public/abc', 'GET /v1/music/public/abc'],
  ])('keeps a response %s for the language in which it was asked for', async (_, path, call) => {
    await using studio = openForeignSite('localhost');
    await using world = startWorld({ ALLOWED_ORIGINS: studio.origin });
    world.upstream.on(call, ({ headers }) => {
      const language = headers.get('accept-language') ?? 'none';
      return new Response(`in ${language}`, {
        headers: { 'cache-control': 'max-age=600', vary: 'Accept-Language', 'content-language': language },
      });
    });
    await using visitor = await visit();
    const url = `http://localhost:${world.port}`;
    await visitor.context.addCookies([{ name: 'svc_music_access', value: 'access-1', url }]);
    const page = await visitor.open(`${studio.origin}/`);
    const responses = await page.evaluate(async (address) => {
      const texts: string[] = [];
      for (const language of ['en', 'en', 'sw']) {
        const headers = { 'accept-language': language };
        texts.push(await (await fetch(address, { credentials: 'include', headers })).text());
      }
      return texts;
    }, url + path);
    expect(responses).toEqual(['in en', 'in en', 'in sw']);
    // One came from the cache; otherwise this test would show nothing.
    expect(world.upstream.calls).toEqual([call, call]);
    expect(world.upstream.last(call).headers.get('accept-language')).toBe('sw');
  });
});
