import { expect, it } from 'bun:test';
import type { Environment } from '../../src/gateway/settings/environment-reader.ts';
import { startWorld } from '../support/world.ts';
import { describeInChromium, visit } from './chromium.ts';
import { openForeignSite } from './foreign-site.ts';

/** For a browser these are one site, and secure although they are http. */
const SITE = 'music.localhost';
const HOST = `api.${SITE}`;
const HARDENED = { COOKIE_SAME_SITE: 'strict', COOKIE_SECURE: 'true' };
const PATHS = ['/api/auth/session', '/api/music/models', '/api/upstream/v1/library'] as const;

type Browsing = Awaited<ReturnType<typeof browse>>;

/** The code says who the user is. Each response of the upstream names the user, and may be cached for an hour. */
async function browse(environment: Environment = {}) {
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
  for (const path of ['/v1/me', '/v1/models', '/v1/library'])
    world.upstream.on(`GET ${path}`, ({ headers }) => {
      const user = headers.get('authorization')?.replace('Bearer access-', '');
      return Response.json({ user }, { headers: { 'cache-control': 'max-age=3600' } });
    });
  const visitor = stack.use(await visit());
  // What the browser logs for each 401.
  visitor.tolerateProblem(/status of 401/);
  const studio = await visitor.open(`${app.origin}/`);
  const blog = await visitor.open(`${other.origin}/`);
  const gatewayUrl = `http://${HOST}:${world.port}`;
  /** What the web app gets from the gateway: the status and the body. */
  const call = (path: string, json?: object): Promise<string> =>
    studio.evaluate(
      async ({ url, body }) => {
        const headers = { 'content-type': 'application/json' };
        const post = body === undefined ? {} : { method: 'POST', headers, body };
        const response = await fetch(url, { credentials: 'include', ...post });
        return `${response.status} ${await response.text()}`;
      },
      { url: gatewayUrl + path, body: json && JSON.stringify(json) },
    );
  const browsing = stack.move();
  return {
    world,
    call,
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
const responsesTo = (user: string) => PATHS.map(() => expect.stringContaining(`200 {"user":"${user}"`));

describeInChromium('cookies that another host of the site sets', () => {
  it('never make a signed-in user work in the attacker’s account', async () => {
    await using browsing = await browse();
    const { world, call, callAll, signIn, cookieNames } = browsing;
    expect(await signIn('ada')).toBe(OK);
    expect(await callAll()).toEqual(responsesTo('ada'));
    await toss(browsing);
    const before = world.upstream.calls.length;
    expect(await callAll()).toEqual(SIGNED_OUT);
    expect(await call('/api/music/generate', {})).toEqual(REFUSED);
    expect(await world.line({ route: PATHS[1], status: 401 })).toMatchObject({
      reason: 'sessionCookieTwice',
    });
    expect(world.upstream.calls).toHaveLength(before);

    expect(await signIn('ada')).toBe(OK);
    expect(await callAll()).toEqual(SIGNED_OUT);
    const authorizations = world.upstream.received.map(({ headers }) => headers.get('authorization'));
    expect(authorizations.join()).not.toContain('mallory');
    // A sign-out does not touch them, and does not reach the upstream.
    expect(await cookieNames()).toContain(`svc_music_access ${HOST}`);
    expect(await call('/api/auth/logout', {})).toBe(OK);
    expect(await cookieNames()).not.toContain(`svc_music_access ${HOST}`);
    expect(await cookieNames()).toContain(`svc_music_access .${SITE}`);
    expect(world.upstream.calls).not.toContain('POST /v1/auth/logout');
  });

  it.each(['__Host-', '__Host-Http-'])('are refused with COOKIE_PREFIX=%s', async (prefix) => {
    await using browsing = await browse({ ...HARDENED, COOKIE_PREFIX: prefix });
    const { world, call, callAll, signIn, cookieNames } = browsing;
    const own = ['access', 'refresh'].map((name) => `${prefix}svc_music_${name} ${HOST}`);
    await toss(browsing, prefix);
    expect(await callAll()).toEqual(SIGNED_OUT);

    expect(await signIn('ada')).toBe(OK);
    expect(await cookieNames()).toEqual(own);
    // The browser sets them without the prefix, and the gateway ignores them.
    for (const each of [prefix, '']) await toss(browsing, each);
    expect(await cookieNames()).toEqual(expect.arrayContaining(own));
    expect(await callAll()).toEqual(responsesTo('ada'));
    expect(await call('/api/auth/logout', {})).toBe(OK);
    expect(world.upstream.last('POST /v1/auth/logout').body).toBe('{"refresh_token":"refresh-ada"}');
    expect(await callAll()).toEqual(SIGNED_OUT);
  });
});

describeInChromium('the browser’s cache', () => {
  it('keeps nothing of one account for another one', async () => {
    await using browsing = await browse();
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
});
