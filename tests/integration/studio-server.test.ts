import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { type StudioServer, startStudio } from '../../src/demo/studio-server.ts';

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
beforeAll(async () => {
  studio = await startStudio({ port: 0, config: CONFIG });
});
afterAll(() => studio.stop());

function get(path: string, init?: RequestInit): Promise<Response> {
  return fetch(studio.url + path, init);
}

interface Element {
  readonly tag: string;
  readonly attributes: Readonly<Record<string, string>>;
}

/** The nonce that the policy of an answer allows. */
function nonceOf({ headers }: Response): string | undefined {
  return /'nonce-([^']+)'/.exec(headers.get('content-security-policy') ?? '')?.[1];
}

async function readPage(response: Response) {
  const nonce = nonceOf(response);
  const elements: Element[] = [];
  const texts: string[] = [];
  await new HTMLRewriter()
    .on('*', {
      element: ({ tagName, attributes }) =>
        void elements.push({ tag: tagName, attributes: Object.fromEntries(attributes) }),
    })
    .on('script', { text: ({ text }) => void texts.push(text) })
    .transform(response)
    .text();
  const named = (tag: string) => elements.filter((element) => element.tag === tag);
  return { nonce, elements, named, inlineScript: texts.join('').trim() };
}

/** What the page loads from its own server. */
async function assetPaths(): Promise<string[]> {
  const { named } = await readPage(await get('/'));
  const addresses = [
    ...named('script').map(({ attributes }) => attributes['src']),
    ...named('link').map(({ attributes }) => attributes['href']),
  ];
  return addresses.map((address) => new URL(address ?? '', studio.url).pathname);
}

describe('the studio’s page', () => {
  it.each(['/', '/callback', '/?listen=c1', '/callback?code=a&state=b'])(
    'is answered at %s',
    async (path) => {
      const response = await get(path);
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(await response.text()).toContain('<title data-text="title">Music Studio</title>');
    },
  );

  it('has the nonce of its own answer on its script, and another one each time', async () => {
    const pages = await Promise.all(
      [get('/'), get('/'), get('/callback')].map(async (page) => readPage(await page)),
    );
    for (const { nonce, named } of pages) {
      expect(nonce).toMatch(/^[\w-]{22,}$/);
      expect(named('script').map(({ attributes }) => attributes['nonce'])).toEqual([nonce ?? '']);
    }
    expect(new Set(pages.map(({ nonce }) => nonce)).size).toBe(3);
  });

  it('has nothing inline that its policy forbids', async () => {
    const { elements, named, inlineScript } = await readPage(await get('/'));
    expect(inlineScript).toBe('');
    expect(named('style')).toEqual([]);
    const attributes = elements.flatMap((element) => Object.keys(element.attributes));
    expect(attributes.filter((name) => name === 'style' || name.startsWith('on'))).toEqual([]);
  });

  it('loads files that are named after their content, each with its type', async () => {
    const types: Record<string, string | null> = {};
    for (const path of await assetPaths()) {
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

  it('is told where gateway and identity provider are', async () => {
    const response = await get('/config.json');
    expect(response.headers.get('content-type')).toStartWith('application/json');
    expect(await response.json()).toEqual(CONFIG);
  });
});

describe('the service worker', () => {
  it('keeps its name, for a browser knows it by that', async () => {
    const response = await get('/live-audio-worker.js');
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toStartWith('text/javascript');
  });

  it('is a script of its own: one that is registered without a type may not import or export', async () => {
    const script = await (await get('/live-audio-worker.js')).text();
    expect(script).toContain('skipWaiting');
    expect(() => new Function(script)).not.toThrow();
  });
});

describe('every answer of the studio', () => {
  const policy = (nonce: string) =>
    [
      "default-src 'none'; script-src 'self'",
      `style-src 'self' 'nonce-${nonce}'`,
      "connect-src 'self' http://localhost:4999; media-src 'self' http://localhost:4999",
      "img-src 'self' data:; worker-src 'self'",
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ].join('; ');

  it.each([
    ['GET', '/', 200],
    ['GET', '/config.json', 200],
    ['GET', '/live-audio-worker.js', 200],
    ['GET', 'an asset', 200],
    ['HEAD', '/', 200],
    ['HEAD', 'an asset', 200],
    ['GET', '/nothing', 404],
    ['HEAD', '/nothing', 404],
    ['POST', '/', 405],
    ['DELETE', '/nothing', 405],
  ])('to %s %s is %d with the same protection', async (method, where, status) => {
    const path = where === 'an asset' ? ((await assetPaths())[0] ?? '') : where;
    const response = await get(path, { method });
    const { headers } = response;
    expect(response.status).toBe(status);
    expect(headers.get('content-security-policy')).toBe(policy(nonceOf(response) ?? ''));
    expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('cache-control')).toBe('no-cache');
    if (method === 'HEAD' || status !== 200) expect(await response.text()).toBe('');
  });

  it.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('to %s names what is allowed', async (method) => {
    const response = await get('/', { method });
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('GET, HEAD');
  });

  it.each([
    '/index.html',
    '/studio.ts',
    '/studio.js',
    '/%2e%2e/package.json',
    '/..%2fpackage.json',
    '/config.json/',
    '/live/x',
  ])('to a path that is no file of it is 404: %s', async (path) => {
    expect((await get(path)).status).toBe(404);
  });

  it('to HEAD tells the type of what GET answers', async () => {
    for (const path of ['/', '/config.json', '/live-audio-worker.js']) {
      const [head, whole] = [await get(path, { method: 'HEAD' }), await get(path)];
      expect(head.headers.get('content-type')).toBe(whole.headers.get('content-type'));
      await whole.body?.cancel();
    }
  });
});

describe('the studio’s server', () => {
  it('rejects with EADDRINUSE for a taken port, which goes on as it was', async () => {
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
