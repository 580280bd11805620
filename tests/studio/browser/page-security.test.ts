import { expect, it } from 'bun:test';
import { describeInChromium } from '../chromium.ts';
import { startDemoWorld } from '../demo-world.ts';
import { openForeignSite } from '../foreign-site.ts';

describeInChromium('the page of the studio', (visit) => {
  it('runs no injected script, and sends nothing to another server', async () => {
    await using world = await startDemoWorld();
    await using visitor = await visit();
    const page = await visitor.open(world.studioUrl);
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
