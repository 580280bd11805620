import { afterAll, expect, it } from 'bun:test';
import { coverPath } from '../../../src/demo/studio/cover.ts';
import { startStudio } from '../../../src/demo/studio-server.ts';

const gateway = Bun.serve({
  port: 0,
  routes: {
    '/api/upstream/v1/music/public/a%2Fb': Response.json({
      data: { title: `"Rain" & <b>$&`, author: `"/><script>`, prompt: 'Rain' },
    }),
  },
  fetch: () => new Response(null, { status: 404 }),
});
const identityProvider = {
  issuer: 'http://localhost:4998',
  authorizationEndpoint: 'http://localhost:4998/oauth/authorize',
  clientId: 'music-studio',
  redirectUri: 'http://localhost:4997/callback',
};
const studio = await startStudio({
  port: 0,
  config: { gatewayUrl: gateway.url.origin, identityProvider, pieces: [] },
});
afterAll(() => Promise.all([studio.stop(), gateway.stop(true)]));

// That nothing in the page breaks its policy: every test in Chromium.
const PROTECTION = {
  'content-security-policy': expect.stringMatching(
    /^default-src 'none'; script-src 'self'; style-src 'self' 'nonce-[\w-]{22,}'; .+; frame-ancestors 'none'$/,
  ),
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-cache',
};
it.each([
  ['GET', 200, ['/', '/?listen=nobody-answers', '/callback?code=a', '/config.json', '/live-audio-worker.js']],
  ['GET', 404, ['/index.html', '/studio.ts', '/config.json/', '/nothing', '/%2e%2e/package.json']],
  ['POST', 405, ['/', '/nothing']],
])(
  'the Studio’s server protects its responses to %s with status %d, each with a nonce of its own: %j',
  async (...row) => {
    const [method, status, paths] = row;
    const responses = await Promise.all(paths.map((path) => fetch(studio.url + path, { method })));
    for (const response of responses)
      expect([response.status, response.headers.toJSON()]).toMatchObject([status, PROTECTION]);
    const policies = responses.map(({ headers }) => headers.get('content-security-policy'));
    expect(new Set(policies).size).toBe(paths.length);
  },
);

it('shows a messenger title, author and cover of a shared track, whatever they contain', async () => {
  const page = await (await fetch(`${studio.url}/?listen=a/b`)).text();
  expect(page).toContain('<meta property="og:title" content="&quot;Rain&quot; &amp; &lt;b&gt;$&amp;" />');
  expect(page).toContain('<meta property="og:description" content="By &quot;/&gt;&lt;script&gt;" />');
  const cover = studio.url + coverPath({ id: 'a/b', prompt: 'Rain' });
  expect(page).toContain(`<meta property="og:image" content="${cover}" />`);
});

it('draws a cover that is the same each time, and another one for another id or prompt', async () => {
  const tracks = [
    { id: 'a', prompt: 'Rain' },
    { id: 'b', prompt: 'Rain' },
    { id: 'a', prompt: 'Snow' },
    { id: 'a', prompt: 'Rain' },
  ];
  const responses = await Promise.all(tracks.map((track) => fetch(studio.url + coverPath(track))));
  const images = await Promise.all(responses.map(async (response) => Buffer.from(await response.bytes())));
  for (const [index, image] of images.entries()) {
    expect(responses[index]?.headers.get('content-type')).toBe('image/png');
    expect(image.readUInt32BE(16)).toBe(256);
  }
  const digests = images.map((image) => Bun.hash(image));
  expect(digests.map((digest) => digests.indexOf(digest))).toEqual([0, 1, 2, 0]);
});
