import { afterAll, beforeAll, expect, it } from 'bun:test';
import { type StudioServer, startStudio } from '../../../src/demo/studio-server.ts';

const CONFIG = {
  gatewayUrl: 'http://localhost:4999',
  identityProvider: {
    issuer: 'http://localhost:4998',
    authorizationEndpoint: 'http://localhost:4998/oauth/authorize',
    clientId: 'music-studio',
    redirectUri: 'http://localhost:4997/callback',
  },
};
const policy = (nonce: string) =>
  `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; ` +
  "connect-src 'self' http://localhost:4999; media-src 'self' http://localhost:4999; img-src 'self' data:; " +
  "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

let studio: StudioServer;
beforeAll(async () => {
  studio = await startStudio({ port: 0, config: CONFIG });
});
afterAll(() => studio.stop());

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
    const [, nonce = ''] =
      /'nonce-([\w-]{22,})'/.exec(response.headers.get('content-security-policy') ?? '') ?? [];
    nonces.add(nonce);
    expect(response.headers.toJSON()).toMatchObject({
      'content-security-policy': policy(nonce),
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
  const asked: unknown[] = [];
  await using gateway = Bun.serve({
    port: 0,
    fetch({ url, headers }) {
      asked.push([new URL(url).pathname, headers.get('origin')]);
      return Response.json({ data: { title: `"Rain" & <b>$&`, author: `"/><script>` } });
    },
  });
  const sharing = await startStudio({ port: 0, config: { ...CONFIG, gatewayUrl: gateway.url.origin } });
  await using _ = { [Symbol.asyncDispose]: () => sharing.stop() };
  const read = async (query: string) => {
    const page = await (await fetch(sharing.url + query)).text();
    return Array.from(page.matchAll(/<meta property="og:(.*)" content="(.*)" \/>/g), (found) =>
      found.slice(1),
    );
  };
  expect([await read('/'), asked]).toEqual([[], []]);
  expect(await read('/?listen=a/b')).toEqual([
    ['type', 'music.song'],
    ['site_name', 'Music Studio'],
    ['title', '&quot;Rain&quot; &amp; &lt;b&gt;$&amp;'],
    ['description', 'By &quot;/&gt;&lt;script&gt;'],
    ['url', `${sharing.url}/?listen=a/b`],
  ]);
  expect(asked).toEqual([['/api/upstream/v1/music/public/a%2Fb', sharing.url]]);
});
