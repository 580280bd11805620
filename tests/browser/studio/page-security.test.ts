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
  it.each(['/', '/callback', '/?listen=none'])('comes with a strict policy at %s', async (path) => {
    await using world = await startDemoWorld();
    const response = await fetch(world.studioUrl + path);
    const again = await fetch(world.studioUrl + path);
    const policy = directives(response.headers.get('content-security-policy') ?? '');
    const [, nonce] = /'nonce-([\w+/=-]{22,})'/.exec(policy['style-src'] ?? '') ?? [];
    expect(nonce).toBeString();
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
    expect(again.headers.get('content-security-policy')).not.toContain(`${nonce}`);
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(response.headers.get('referrer-policy')).toBe('no-referrer');
    expect(response.headers.get('cross-origin-opener-policy')).toBe('same-origin');
    expect(await response.text()).not.toMatch(/<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|<style/);
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
      const form = Object.assign(document.createElement('form'), {
        action: 'http://127.0.0.1:9/leak',
        method: 'post',
      });
      const failed = new Promise((resolve) => leak.addEventListener('error', resolve));
      const broken = new Promise((resolve) => image.addEventListener('error', resolve));
      document.body.append(script, image, leak, form);
      form.submit();
      await Promise.all([failed, broken]);
      const sent = await fetch('http://127.0.0.1:9/leak').then(
        () => 'sent',
        () => 'blocked',
      );
      return { sent, injected: document.documentElement.dataset['injected'] ?? 'nothing' };
    });
    expect(marks).toEqual({ sent: 'blocked', injected: 'nothing' });
    expect(page.url()).toStartWith(world.studioUrl);
  });

  it('cannot be framed by another site', async () => {
    await using world = await startDemoWorld();
    await using site = openForeignSite('localhost');
    await using visitor = await visit();
    visitor.expectProblem(/frame-ancestors/);
    visitor.tolerateProblem(/ERR_BLOCKED_BY_RESPONSE|chrome-error|ERR_FAILED/);
    const page = await visitor.open(`${site.origin}/`);
    const frame = await page.evaluate(
      (src) =>
        new Promise<string>((resolve) => {
          const element = document.createElement('iframe');
          element.addEventListener('load', () =>
            resolve(element.contentDocument === null ? 'blocked' : 'same origin'),
          );
          element.src = src;
          document.body.append(element);
        }),
      world.studioUrl,
    );
    expect(frame).toBe('blocked');
    expect(page.frames().map((each) => each.url())).not.toContain(`${world.studioUrl}/`);
  });
});
