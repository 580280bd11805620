import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
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

let studio: StudioServer;
/** The paths of what the page loads from its own server. */
let assets: string[];
beforeAll(async () => {
  studio = await startStudio({ port: 0, config: CONFIG });
  const { attributesOf } = await readPage(await get('/'));
  const addresses = [...attributesOf('script'), ...attributesOf('link')].map(({ src, href }) => src ?? href);
  assets = addresses.map((address) => new URL(address ?? '', studio.url).pathname);
});
afterAll(() => studio.stop());

function get(path: string, init?: RequestInit): Promise<Response> {
  return fetch(studio.url + path, init);
}

/** The nonce that the policy of a response allows. */
function nonceOf({ headers }: Response): string | undefined {
  return /'nonce-([^']+)'/.exec(headers.get('content-security-policy') ?? '')?.[1];
}

async function readPage(response: Response) {
  const nonce = nonceOf(response);
  const elements: { tag: string; attributes: Record<string, string> }[] = [];
  const element = ({ tagName, attributes }: HTMLRewriterTypes.Element) =>
    void elements.push({ tag: tagName, attributes: Object.fromEntries(attributes) });
  await new HTMLRewriter().on('*', { element }).transform(response).text();
  const attributesOf = (tag: string) =>
    elements.filter((each) => each.tag === tag).map(({ attributes }) => attributes);
  return { nonce, attributesOf };
}

// That nothing in it is inline: browser/studio/page-security.test.ts.
describe('the Studio’s page', () => {
  it.each(['/', '/callback', '/?listen=c1', '/callback?code=a&state=b'])('is served at %s', async (path) => {
    const response = await get(path);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(await response.text()).toContain('<title data-text="title">Music Studio</title>');
  });

  it('has the nonce of its own response on its script, and another one each time', async () => {
    const nonces = new Set<string>();
    for (const path of ['/', '/', '/callback']) {
      const { nonce = '', attributesOf } = await readPage(await get(path));
      expect(nonce).toMatch(/^[\w-]{22,}$/);
      expect(attributesOf('script').map((script) => script['nonce'])).toEqual([nonce]);
      nonces.add(nonce);
    }
    expect(nonces.size).toBe(3);
  });

  it('loads files that are named after their content, each with its type', async () => {
    const types: Record<string, string | null> = {};
    for (const path of assets) {
      const response = await get(path);
      expect(response.status).toBe(200);
      expect(path).toMatch(/^\/[a-z-]+-[0-9a-z]{8}\.[a-z]+$/);
      types[path.replace(/.*\./, '')] = response.headers.get('content-type');
    }
    expect(types).toEqual({
      css: 'text/css;charset=utf-8',
      js: 'text/javascript;charset=utf-8',
      svg: 'image/svg+xml',
    });
  });

  it('reads from its server where gateway and identity provider are', async () => {
    const response = await get('/config.json');
    expect(response.headers.get('content-type')).toStartWith('application/json');
    expect(await response.json()).toEqual(CONFIG);
  });

  it('finds the service worker under a fixed name, as a script without imports and exports', async () => {
    const response = await get('/live-audio-worker.js');
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toStartWith('text/javascript');
    const script = await response.text();
    expect(script).toContain('skipWaiting');
    // A worker that is registered without a type may not import or export.
    expect(() => new Function(script)).not.toThrow();
  });
});

describe('the Studio’s server', () => {
  const policy = (nonce: string) =>
    [
      "default-src 'none'; script-src 'self'",
      `style-src 'self' 'nonce-${nonce}'`,
      "connect-src 'self' http://localhost:4999; media-src 'self' http://localhost:4999",
      "img-src 'self' data:; worker-src 'self'",
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ].join('; ');

  it.each([
    ['GET', 200, ['/', '/config.json', '/live-audio-worker.js', 'an asset']],
    ['HEAD', 200, ['/', '/config.json', '/live-audio-worker.js', 'an asset']],
    ['GET', 404, ['/index.html', '/studio.ts', '/studio.js', '/config.json/', '/live/x', '/nothing']],
    ['GET', 404, ['/%2e%2e/package.json', '/..%2fpackage.json']],
    ['HEAD', 404, ['/nothing']],
    ['POST', 405, ['/', '/nothing']],
    ['PUT', 405, ['/']],
    ['PATCH', 405, ['/']],
    ['DELETE', 405, ['/nothing']],
    ['OPTIONS', 405, ['/']],
  ])('protects its responses to %s with status %d: %j', async (method, status, paths) => {
    for (const each of paths) {
      const path = each === 'an asset' ? (assets[0] ?? '') : each;
      const response = await get(path, { method });
      expect([path, response.status]).toEqual([path, status]);
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'content-security-policy': policy(nonceOf(response) ?? ''),
        'cross-origin-opener-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-cache',
      });
      expect(response.headers.get('allow')).toBe(status === 405 ? 'GET, HEAD' : null);
      if (method === 'HEAD' || status !== 200) expect(await response.text()).toBe('');
    }
  });

  it('responds to HEAD with the type of what GET returns', async () => {
    for (const path of ['/', '/config.json', '/live-audio-worker.js']) {
      const [head, whole] = [await get(path, { method: 'HEAD' }), await get(path)];
      expect(head.headers.get('content-type')).toBe(whole.headers.get('content-type'));
    }
  });

  it('rejects with EADDRINUSE for a taken port, whose server continues', async () => {
    const port = Number(new URL(studio.url).port);
    await expect(startStudio({ port, config: CONFIG })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    expect((await get('/config.json')).status).toBe(200);
  });

  it('is gone when it is stopped', async () => {
    const other = await startStudio({ port: 0, config: CONFIG });
    await other.stop();
    await expect(fetch(other.url)).rejects.toThrow();
  });
});
