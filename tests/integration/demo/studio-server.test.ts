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

/** The nonce that the policy of a response allows. */
function nonceOf({ headers }: Response): string {
  return /'nonce-([^']+)'/.exec(headers.get('content-security-policy') ?? '')?.[1] ?? '';
}

// That nothing in the page is inline: browser/studio/page-security.test.ts.
describe('the Studio’s server', () => {
  it('sends the page at two paths, its script with another nonce each time', async () => {
    const nonces = new Set<string>();
    for (const path of ['/', '/?listen=c1', '/callback?code=a&state=b']) {
      const response = await fetch(studio.url + path);
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
      const text = await response.text();
      expect(text).toContain('<title data-text="title">Music Studio</title>');
      const used = Array.from(text.matchAll(/<script [^>]*nonce="([^"]+)"/g), ([, found]) => found);
      expect(used).toEqual([nonceOf(response)]);
      nonces.add(nonceOf(response));
    }
    expect(nonces.size).toBe(3);
  });

  it('sends where gateway and identity provider are, and the service worker as a script without imports', async () => {
    expect(await (await fetch(`${studio.url}/config.json`)).json()).toEqual(CONFIG);
    const script = await (await fetch(studio.url + WORKER)).text();
    expect(script).toContain('skipWaiting');
    // A worker that is registered without a type may not import or export.
    expect(() => new Function(script)).not.toThrow();
  });

  const policy = (nonce: string) =>
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
      const response = await fetch(studio.url + path, { method });
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

  it('rejects with EADDRINUSE for a taken port', async () => {
    const port = Number(new URL(studio.url).port);
    await expect(startStudio({ port, config: CONFIG })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });
});
