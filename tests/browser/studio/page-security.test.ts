import { expect, it } from 'bun:test';
import { describeInChromium } from '../../support/chromium.ts';
import { startDemoWorld } from '../../support/demo-world.ts';
import { openForeignSite } from '../../support/foreign-site.ts';
import { openStudio } from './page.ts';

/** The policy as directives; the nonce is another one each time. */
function directives(policy: string): Record<string, string> {
  const entries = policy.split(';').map((directive) => {
    const [name = '', ...sources] = directive.trim().split(/\s+/);
    return [name, sources.join(' ')] as const;
  });
  return Object.fromEntries(entries);
}

describeInChromium('the page of the studio', (visit) => {
  it('comes with a strict policy, and a new nonce each time', async () => {
    await using world = await startDemoWorld();
    const nonces = new Set<string | undefined>();
    for (const path of ['/', '/', '/callback', '/?listen=none']) {
      const response = await fetch(world.studioUrl + path);
      const policy = directives(response.headers.get('content-security-policy') ?? '');
      const [, nonce] = /'nonce-([\w+/=-]{22,})'/.exec(policy['style-src'] ?? '') ?? [];
      nonces.add(nonce);
      expect(policy).toEqual({
        'default-src': "'none'",
        'script-src': "'self'",
        'style-src': `'self' 'nonce-${nonce}'`,
        'connect-src': `'self' ${world.gatewayUrl}`,
        'media-src': `'self' ${world.gatewayUrl}`,
        'img-src': "'self' data:",
        'worker-src': "'self'",
        'base-uri': "'none'",
        'form-action': "'none'",
        'frame-ancestors': "'none'",
      });
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      expect(response.headers.get('referrer-policy')).toBe('no-referrer');
      expect(response.headers.get('cross-origin-opener-policy')).toBe('same-origin');
      expect(await response.text()).not.toMatch(/<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|<style/);
    }
    expect(nonces.size).toBe(4);
  });

  it('runs no injected script, and sends nothing to another server', async () => {
    await using studio = await openStudio(visit);
    const { world, visitor, page } = studio;
    for (const directive of ['script-src', 'connect-src', 'img-src', 'form-action']) {
      visitor.expectProblem(new RegExp(`CSP violation: ${directive}`));
    }
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
