import { expect, it } from 'bun:test';
import type { GatewayClient } from '../../src/client/gateway-client.ts';
import { bundleModules, CLIENT } from '../page/client/bundle.ts';
import { describeInChromium } from '../support/chromium.ts';
import { eventually } from '../support/eventually.ts';

/** What the page has loaded. */
declare const client: GatewayClient;

const PAGE = `<!doctype html><link rel="icon" href="data:,"><script type="module" src="/entry.js"></script>`;
const ENTRY = `
  import { createGatewayClient } from '${CLIENT}';
  globalThis.client = createGatewayClient({ baseUrl: location.origin });
`;
const MODULES = '**/chunk-*';

/** A page with the client, and what it needs of a gateway. */
async function servePage() {
  const modules = await bundleModules(ENTRY);
  let authenticated = true;
  const server = Bun.serve({
    port: 0,
    hostname: 'localhost',
    fetch(request) {
      const { pathname } = new URL(request.url);
      const file = modules.get(pathname);
      if (file) return new Response(file);
      if (pathname === '/api/auth/session') return Response.json({ authenticated });
      if (pathname === '/api/music/generate') return new Response('audio');
      return new Response(PAGE, { headers: { 'content-type': 'text/html' } });
    },
  });
  return {
    url: server.url.href,
    signOut() {
      authenticated = false;
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

/** The provider's address without its query, or the error as JSON. */
async function beginSignIn(): Promise<string> {
  try {
    const { origin, pathname } = await client.beginSignIn({
      issuer: 'https://id.test',
      authorizationEndpoint: 'https://id.test/authorize',
      clientId: 'studio',
      redirectUri: location.href,
    });
    return origin + pathname;
  } catch (error) {
    return JSON.stringify(error);
  }
}

describeInChromium('the part of the client that is loaded when somebody signs in', (visit) => {
  it('fails the sign-in when it cannot be loaded, and the next sign-in loads it again', async () => {
    await using served = await servePage();
    await using visitor = await visit();
    const page = await visitor.open(served.url);
    visitor.expectProblem(/ERR_FAILED/);
    await page.route(MODULES, (route) => route.abort());
    expect(await page.evaluate(beginSignIn)).toContain('"status":0,"retryIsSafe":true');
    await page.unroute(MODULES);
    expect(await page.evaluate(beginSignIn)).toBe('https://id.test/authorize');
  });

  it('is there before the button is pressed, and nobody else needs it', async () => {
    await using served = await servePage();
    await using visitor = await visit();
    const page = await visitor.open(served.url);
    let modules = 0;
    await page.route(MODULES, (route) => {
      modules++;
      return route.continue();
    });
    const audio = page.evaluate(async () => {
      const { body } = await client.generate({ model: 'm', prompt: 'p', music_length_ms: 3000 });
      return new Response(body).text();
    });
    expect(await audio).toBe('audio');
    expect(await page.evaluate(() => client.session())).toEqual({ authenticated: true });
    expect(modules).toBe(0);
    served.signOut();
    expect(await page.evaluate(() => client.session())).toEqual({ authenticated: false });
    await eventually(() => modules === 1, 'the module');
    expect(await page.evaluate(beginSignIn)).toBe('https://id.test/authorize');
    expect(modules).toBe(1);
  });
});
