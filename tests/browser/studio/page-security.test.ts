import { describe, expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../chromium.ts';
import { startDemoWorld } from '../demo-world.ts';
import { openForeignSite } from '../foreign-site.ts';
import { openStudio } from './page.ts';

describe('the server of the studio', () => {
  it('sends the page with a strict policy and a new nonce each time, and its files compressed', async () => {
    await using world = await startDemoWorld();
    const nonces = new Set<string | undefined>();
    let html = '';
    for (const path of ['/', '/', '/callback', '/?listen=none']) {
      const response = await fetch(world.studioUrl + path);
      const policy = response.headers.get('content-security-policy') ?? '';
      const [, nonce] = /'nonce-([\w+/=-]{22,})'/.exec(policy) ?? [];
      nonces.add(nonce);
      expect(policy.split('; ')).toEqual([
        "default-src 'none'",
        "script-src 'self'",
        `style-src 'self' 'nonce-${nonce}'`,
        `connect-src 'self' ${world.gatewayUrl}`,
        `media-src 'self' ${world.gatewayUrl}`,
        "img-src 'self' data:",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
      ]);
      expect(response.headers.toJSON()).toMatchObject({
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
      });
      html = await response.text();
      expect(html).not.toMatch(/<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|<style/);
    }
    expect(nonces.size).toBe(4);

    const files = Array.from(html.matchAll(/(?:src|href)="(\/[^"]+\.(?:js|css))"/g), ([, path = '']) => path);
    expect(files).toHaveLength(2);
    for (const path of [...files, '/live-audio-worker.js']) {
      const [plain, small] = await Promise.all(
        ['identity', 'gzip'].map((encoding) =>
          fetch(world.studioUrl + path, { decompress: false, headers: { 'accept-encoding': encoding } }),
        ),
      );
      expect([plain, small].map((each) => each?.headers.get('content-encoding'))).toEqual([null, 'gzip']);
      expect(small?.headers.get('vary')).toBe('accept-encoding');
      const [bytes, compressed] = [await plain?.bytes(), await small?.bytes()];
      expect(compressed?.length).toBeLessThan(bytes?.length ?? 0);
      expect(Bun.gunzipSync(compressed ?? '')).toEqual(bytes ?? new Uint8Array());
    }
  });
});

describeInChromium('the page of the studio', (visit) => {
  it('is there for an unknown path, and says so', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false });
    const { page, visitor, world } = studio;
    visitor.expectProblem(/status of 404/);
    const response = await page.goto(`${world.studioUrl}/some/where/else`);
    expect(response?.status()).toBe(404);
    await studio.warns(english.noSuchPage);
    expect(page.url()).toBe(`${world.studioUrl}/`);
    await studio.signIn('Ada');
  });

  it('runs no injected script, and sends nothing to another server', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false });
    const { world, visitor, page } = studio;
    for (const directive of ['script-src', 'connect-src', 'img-src', 'form-action'])
      visitor.expectProblem(new RegExp(`CSP violation: ${directive}`));
    visitor.tolerateProblem(/Content Security Policy|request: csp/);
    const marks = await page.evaluate(async () => {
      const script = document.createElement('script');
      script.textContent = 'document.documentElement.dataset.injected = "script"';
      const image = document.createElement('img');
      image.setAttribute('onerror', 'document.documentElement.dataset.injected = "attribute"');
      image.src = 'data:,broken';
      const leak = Object.assign(new Image(), { src: 'http://127.0.0.1:9/leak' });
      const form = document.createElement('form');
      Object.assign(form, { action: 'http://127.0.0.1:9/leak', method: 'post' });
      const failed = new Promise((resolve) => leak.addEventListener('error', resolve));
      const broken = new Promise((resolve) => image.addEventListener('error', resolve));
      document.body.append(script, image, leak, form);
      form.submit();
      await Promise.all([failed, broken]);
      const blocked = await fetch('http://127.0.0.1:9/leak').catch(() => 'blocked');
      return [blocked, document.documentElement.dataset['injected'] ?? 'nothing'];
    });
    expect(marks).toEqual(['blocked', 'nothing']);
    expect(page.url()).toStartWith(world.studioUrl);
  });

  it('cannot be framed by another site', async () => {
    await using world = await startDemoWorld();
    await using site = openForeignSite('localhost');
    await using visitor = await visit();
    visitor.expectProblem(/frame-ancestors/);
    visitor.tolerateProblem(/ERR_BLOCKED_BY_RESPONSE|chrome-error|ERR_FAILED/);
    const page = await visitor.open(`${site.origin}/`);
    const isReadable = await page.evaluate(async (src) => {
      const element = Object.assign(document.createElement('iframe'), { src });
      const loaded = new Promise((resolve) => element.addEventListener('load', resolve));
      document.body.append(element);
      await loaded;
      return element.contentDocument !== null;
    }, world.studioUrl);
    expect(isReadable).toBe(false);
    expect(page.frames().map((each) => each.url())).not.toContain(`${world.studioUrl}/`);
  });
});
