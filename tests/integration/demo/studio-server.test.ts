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
const WORKER = '/live-audio-worker.js';

let studio: StudioServer;
beforeAll(async () => {
  studio = await startStudio({ port: 0, config: CONFIG });
});
afterAll(() => studio.stop());

function get(path: string, init?: RequestInit): Promise<Response> {
  return fetch(studio.url + path, init);
}

/** The nonce that the policy of a response allows. */
function nonceOf({ headers }: Response): string | undefined {
  return /'nonce-([^']+)'/.exec(headers.get('content-security-policy') ?? '')?.[1];
}

async function readPage(path: string) {
  const response = await get(path);
  const text = await response.text();
  const nonces = Array.from(text.matchAll(/<script [^>]*nonce="([^"]+)"/g), ([, found]) => found);
  return { response, text, nonces, nonce: nonceOf(response) ?? '' };
}

// That nothing in it is inline: browser/studio/page-security.test.ts.
describe('the Studio’s page', () => {
  it('is served at two paths, its script with another nonce each time', async () => {
    const nonces = new Set<string>();
    for (const path of ['/', '/?listen=c1', '/callback?code=a&state=b']) {
      const { response, text, nonces: used, nonce } = await readPage(path);
      expect([response.status, response.headers.get('content-type')]).toEqual([
        200,
        'text/html; charset=utf-8',
      ]);
      expect(text).toContain('<title data-text="title">Music Studio</title>');
      expect(nonce).toMatch(/^[\w-]{22,}$/);
      expect(used).toEqual([nonce]);
      nonces.add(nonce);
    }
    expect(nonces.size).toBe(3);
  });

  it('reads from its server where gateway and identity provider are', async () => {
    expect(await (await get('/config.json')).json()).toEqual(CONFIG);
  });

  it('finds the service worker under a fixed name, as a script without imports and exports', async () => {
    const script = await (await get(WORKER)).text();
    expect(script).toContain('skipWaiting');
    // A worker that is registered without a type may not import or export.
    expect(() => new Function(script)).not.toThrow();
  });
});

describe('the Studio’s server', () => {
  const policy = (nonce = '') =>
    `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; ` +
    "connect-src 'self' http://localhost:4999; media-src 'self' http://localhost:4999; img-src 'self' data:; " +
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

  it.each([
    ['GET', 200, ['/', '/config.json', WORKER]],
    ['HEAD', 200, ['/', '/config.json', WORKER]],
    ['GET', 404, ['/index.html', '/studio.ts', '/config.json/', '/nothing', '/%2e%2e/package.json']],
    ['POST', 405, ['/', '/nothing']],
    ['OPTIONS', 405, ['/']],
  ])('protects its responses to %s with status %d: %j', async (method, status, paths) => {
    for (const path of paths) {
      const response = await get(path, { method });
      expect([path, response.status]).toEqual([path, status]);
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'content-security-policy': policy(nonceOf(response)),
        'cross-origin-opener-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-cache',
      });
      expect(response.headers.get('allow')).toBe(status === 405 ? 'GET, HEAD' : null);
      expect((await response.text()) === '').toBe(method !== 'GET' || status !== 200);
    }
  });

  it('rejects with EADDRINUSE for a taken port, whose server continues until it is stopped', async () => {
    const other = await startStudio({ port: 0, config: CONFIG });
    const port = Number(new URL(other.url).port);
    await expect(startStudio({ port, config: CONFIG })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    expect((await fetch(`${other.url}/config.json`)).status).toBe(200);
    await other.stop();
    await expect(fetch(other.url)).rejects.toThrow();
  });
});
