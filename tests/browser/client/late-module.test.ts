import { expect, it } from 'bun:test';
import type { GatewayClient } from '../../../src/client/gateway-client.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { eventually } from '../../support/eventually.ts';
import { bundleModules, CLIENT } from './bundle.ts';

/** What the page has loaded. */
declare const client: GatewayClient;

const PAGE = `<!doctype html><link rel="icon" href="data:,"><script type="module" src="/entry.js"></script>`;
const ENTRY = `
  import { createGatewayClient } from '${CLIENT}';
  globalThis.client = createGatewayClient({ baseUrl: location.origin });
`;
const MODULES = '**/chunk-*';

/** A page with the client, and in place of the gateway a server that counts what reaches it. */
async function servePage() {
  const modules = await bundleModules(ENTRY);
  const calls: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: 'localhost',
    fetch(request) {
      const { pathname } = new URL(request.url);
      const file = modules.get(pathname);
      if (file) return new Response(file);
      calls.push(pathname);
      if (pathname === '/api/music/models') return Response.json([]);
      if (pathname === '/api/music/generate') return new Response('audio');
      return new Response(PAGE, { headers: { 'content-type': 'text/html' } });
    },
  });
  return { url: server.url.href, calls, [Symbol.asyncDispose]: () => server.stop(true) };
}

/** The audio as a text, or the error as JSON. */
async function generateText(): Promise<string> {
  try {
    const { body } = await client.generate({ model: 'm', prompt: 'p', music_length_ms: 3000 });
    return await new Response(body).text();
  } catch (error) {
    return JSON.stringify(error);
  }
}

describeInChromium('the part of the client that a page loads late', (visit) => {
  it('fails a generation that nobody has ordered, and the next generation loads it again', async () => {
    await using served = await servePage();
    await using visitor = await visit();
    const page = await visitor.open(served.url);
    visitor.expectProblem(/ERR_FAILED/);
    await page.route(MODULES, (route) => route.abort());
    expect(await page.evaluate(generateText)).toContain('"status":0,"retryIsSafe":true');
    expect(served.calls).toEqual(['/']);
    await page.unroute(MODULES);
    expect(await page.evaluate(generateText)).toBe('audio');
    expect(served.calls).toEqual(['/', '/api/music/generate']);
  });

  it('ends the wait for it with the signal', async () => {
    await using served = await servePage();
    await using visitor = await visit();
    const page = await visitor.open(served.url);
    await page.route(MODULES, () => {});
    const requested = page.waitForRequest(MODULES);
    const aborted = page.evaluate(async () => {
      const abort = new AbortController();
      Object.assign(globalThis, { abort });
      const order = { model: 'm', prompt: 'p', music_length_ms: 3000 };
      return client.generate(order, { signal: abort.signal }).catch((reason) => reason);
    });
    await requested;
    await page.evaluate(`abort.abort('left')`);
    expect(await aborted).toBe('left');
    expect(served.calls).toEqual(['/']);
  });

  it('is loaded as soon as the page asks for the models', async () => {
    await using served = await servePage();
    await using visitor = await visit();
    const page = await visitor.open(served.url);
    let modules = 0;
    await page.route(MODULES, (route) => {
      modules++;
      return route.continue();
    });
    await page.evaluate(() => client.models());
    await eventually(() => modules === 1, 'the module');
    expect(await page.evaluate(generateText)).toBe('audio');
    expect(modules).toBe(1);
  });
});
