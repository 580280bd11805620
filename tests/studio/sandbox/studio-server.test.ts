import { afterAll, beforeAll, expect, it } from 'bun:test';
import { type StudioServer, startStudio } from '../../../src/demo/studio-server.ts';

/** What the server of the page has asked of the gateway. */
const asked: unknown[] = [];
const gateway = Bun.serve({
  port: 0,
  fetch({ url, headers }) {
    asked.push([new URL(url).pathname, headers.get('origin')]);
    return Response.json({ data: { title: `"Rain" & <b>$&`, author: `"/><script>` } });
  },
});
const identityProvider = {
  issuer: 'http://localhost:4998',
  authorizationEndpoint: 'http://localhost:4998/oauth/authorize',
  clientId: 'music-studio',
  redirectUri: 'http://localhost:4997/callback',
};
let studio: StudioServer;
beforeAll(async () => {
  studio = await startStudio({ port: 0, config: { gatewayUrl: gateway.url.origin, identityProvider } });
});
afterAll(() => Promise.all([studio.stop(), gateway.stop(true)]));

// That nothing in the page breaks its policy: every test in Chromium.
const PATHS = ['/', '/?listen=nobody-answers', '/callback?code=a', '/config.json', '/live-audio-worker.js'];
it.each([
  ['GET', 200, PATHS],
  ['HEAD', 200, PATHS],
  ['GET', 404, ['/index.html', '/studio.ts', '/config.json/', '/nothing', '/%2e%2e/package.json']],
  ['POST', 405, ['/', '/nothing']],
])('the Studio’s server protects its responses to %s with status %d: %j', async (method, status, paths) => {
  const nonces = new Set<string>();
  for (const path of paths) {
    const response = await fetch(studio.url + path, { method });
    expect([path, response.status]).toEqual([path, status]);
    const policy = response.headers.get('content-security-policy') ?? '';
    const [, nonce = ''] = /'nonce-([\w-]{22,})'/.exec(policy) ?? [];
    nonces.add(nonce);
    expect(policy).toStartWith("default-src 'none'; script-src 'self'; style-src 'self' 'nonce-");
    expect(policy).toEndWith("form-action 'none'; frame-ancestors 'none'");
    expect(response.headers.toJSON()).toMatchObject({
      'cross-origin-opener-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-cache',
    });
    expect(response.headers.get('allow')).toBe(status === 405 ? 'GET, HEAD' : null);
    const text = await response.text();
    expect(text === '').toBe(method !== 'GET' || status !== 200);
    for (const [, used] of text.matchAll(/<script [^>]*nonce="([^"]+)"/g)) expect(used).toBe(nonce);
  }
  expect(nonces.size).toBe(paths.length);
});

it('shows a messenger title and author of a shared track, whatever they contain', async () => {
  const preview = async (query: string) =>
    (await (await fetch(studio.url + query)).text()).match(/<meta property="og:.*/g) ?? [];
  asked.length = 0;
  expect([await preview('/'), asked]).toEqual([[], []]);
  const lines = await preview('/?listen=a/b');
  expect(lines).toContain('<meta property="og:title" content="&quot;Rain&quot; &amp; &lt;b&gt;$&amp;" />');
  expect(lines).toContain('<meta property="og:description" content="By &quot;/&gt;&lt;script&gt;" />');
  expect(asked).toEqual([['/api/upstream/v1/music/public/a%2Fb', studio.url]]);
});
