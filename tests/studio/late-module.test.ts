import { expect, it } from 'bun:test';
import type { GatewayClient } from '../../src/client/gateway-client.ts';
import { ROOT } from '../support/documents.ts';
import { describeInChromium } from './chromium.ts';

/** What the page has loaded. */
declare const client: GatewayClient;

const PAGE = `<!doctype html><link rel="icon" href="data:,"><script type="module" src="/entry.js"></script>`;
const ENTRY = `
  import { createGatewayClient } from './src/client/index.ts';
  globalThis.client = createGatewayClient({ baseUrl: location.origin });
`;
const MODULES = '**/chunk-*';
const SESSION = '**/api/auth/session';

/** The provider's address, or the error as JSON. */
const beginSignIn = () =>
  client
    .beginSignIn({
      issuer: 'https://id.test',
      authorizationEndpoint: 'https://id.test/authorize',
      clientId: 'studio',
      redirectUri: location.href,
    })
    .then(String, JSON.stringify);

describeInChromium('the part of the client that signs in', (visit) => {
  it('is loaded when nobody is signed in, before the button is pressed, and again after a failure', async () => {
    const entry = `${ROOT}entry.ts`;
    const files = { [entry]: ENTRY };
    const bundle = await Bun.build({ entrypoints: [entry], files, splitting: true, target: 'browser' });
    const modules = new Map(bundle.outputs.map((output) => [output.path.replace('./', '/'), output]));
    await using server = Bun.serve({
      port: 0,
      hostname: 'localhost',
      fetch: ({ url }) =>
        new Response(modules.get(new URL(url).pathname) ?? PAGE, {
          headers: { 'content-type': url.endsWith('.js') ? 'text/javascript' : 'text/html' },
        }),
    });
    await using visitor = await visit();
    const page = await visitor.open(server.url.href);
    let loads = 0;
    page.on('request', (request) => {
      if (request.url().includes('/chunk-')) loads++;
    });
    await page.route(SESSION, (route) => route.fulfill({ json: { authenticated: true } }));
    expect(await page.evaluate(() => client.session())).toEqual({ authenticated: true });
    expect(loads).toBe(0);

    visitor.expectProblem(/ERR_FAILED/);
    await page.route(MODULES, (route) => route.abort());
    expect(await page.evaluate(beginSignIn)).toContain('"status":0,"retryIsSafe":true');
    await page.unroute(MODULES);
    const loaded = page.waitForResponse(MODULES);
    await page.route(SESSION, (route) => route.fulfill({ json: { authenticated: false } }));
    expect(await page.evaluate(() => client.session())).toEqual({ authenticated: false });
    await loaded;
    const before = loads;
    expect(await page.evaluate(beginSignIn)).toStartWith('https://id.test/authorize?');
    expect(loads).toBe(before);
  });
});
