import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { openStudio } from './page.ts';

describeInChromium('the server of the studio', (visit) => {
  it('sends scripts and styles compressed', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false });
    const { page } = studio;
    const files = ['script', 'stylesheet'].map((type) =>
      page.waitForResponse((response) => response.request().resourceType() === type),
    );
    await page.reload();
    for (const file of await Promise.all(files)) {
      expect(file.headers()['content-encoding']).toBe('gzip');
      expect(file.headers()['vary']).toContain('accept-encoding');
      const { responseBodySize } = await file.request().sizes();
      expect(responseBodySize).toBeLessThan((await file.body()).byteLength / 2);
    }
    const plain = await fetch(`${studio.world.studioUrl}/live-audio-worker.js`, {
      headers: { 'accept-encoding': 'identity' },
    });
    expect(plain.headers.get('content-encoding')).toBeNull();
    expect(await plain.text()).toContain('skipWaiting');
  });

  it('sends the page for an unknown path, where it says so and works', async () => {
    await using studio = await openStudio(visit);
    const { page, visitor, world } = studio;
    visitor.expectProblem(/status of 404/);
    for (const path of ['/nothing', '/some/where/else']) {
      const response = await page.goto(world.studioUrl + path);
      expect(response?.status()).toBe(404);
      expect(await studio.alertText()).toContain(english.noSuchPage);
      expect(page.url()).toBe(`${world.studioUrl}/`);
    }
    await studio.isLoaded();
    await studio.generate();
  });
});
