import { expect, it } from 'bun:test';
import type { Page } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
import { eventually } from '../../support/eventually.ts';
import { describeInChromium } from '../chromium.ts';
import { openForeignSite } from '../foreign-site.ts';
import { openStudio } from './page.ts';

const ORDER = JSON.stringify({
  model: 'sandbox-music-1',
  prompt: 'Nobody else may order this',
  music_length_ms: 3_000,
});
const CALLS = [
  ['/api/auth/session'],
  ['/api/music/models'],
  ['/api/upstream/v1/me'],
  ['/api/auth/logout', 'POST'],
  ['/api/music/generate', 'POST', 'application/json', ORDER],
  ['/api/music/generate', 'POST', 'text/plain', ORDER],
  ['/api/upstream/v1/music', 'POST', 'text/plain', ORDER],
  ['/api/upstream/v1/music/creations/7', 'PATCH', 'application/json', '{"is_public":true}'],
] as const;

/** What the browser and the gateway say to what these pages try. */
const REFUSALS = /CORS policy|status of 40[03]|ERR_FAILED|ERR_BLOCKED/;

/** Makes each of the calls with the cookies, twice, because a page can do harm without reading the response. */
function fetchAll(page: Page, base: string) {
  return page.evaluate(
    ({ base, calls }) =>
      Promise.all(
        calls.map(async ([path, method = 'GET', type, body]) => {
          const headers = type ? { headers: { 'content-type': type }, body } : {};
          const init = { method, credentials: 'include', ...headers } as const;
          const rejected = () => 'rejected';
          await fetch(base + path, { ...init, mode: 'no-cors' }).catch(rejected);
          return fetch(base + path, init).then(({ status }) => status, rejected);
        }),
      ),
    { base, calls: CALLS },
  );
}

/** Loads a file as audio, with cookies and without, and as an image, and says which event comes of each. */
function loadAll(page: Page, url: string) {
  return page.evaluate((url) => {
    const withCookies = Object.assign(new Audio(), { crossOrigin: 'use-credentials' });
    const outcomes = [withCookies, new Audio(), new Image()].map((element) => {
      const { promise, resolve } = Promise.withResolvers<string>();
      for (const type of ['error', 'load', 'loadeddata']) element.addEventListener(type, () => resolve(type));
      element.src = url;
      return promise;
    });
    return Promise.all(outcomes);
  }, url);
}

/** Submits a form whose only field, sent as `name=value`, makes JSON of the order with one field more. */
async function submitForm(page: Page, action: string): Promise<number> {
  const response = page.waitForResponse(action);
  await page.setContent(`<form action="${action}" method="post" enctype="text/plain">
    <input name='${ORDER.slice(0, -1)},"more":"' value='"}'></form>`);
  await page.locator('form').evaluate((form: HTMLFormElement) => form.submit());
  // The page is that of the response, and no navigation is under way.
  await page.waitForURL(action);
  return (await response).status();
}

// `localhost` is the studio's own site, on another port, and its calls carry the cookies; `127.0.0.1` is another site.
describeInChromium('a page on a foreign origin of the host', () => {
  it.each(['localhost', '127.0.0.1'])(
    '%s reads, plays and generates nothing for a user, whom it cannot sign out',
    async (host) => {
      await using studio = await openStudio();
      const { world, visitor } = studio;
      const { gatewayUrl } = world;
      visitor.tolerateProblem(REFUSALS);
      await studio.generate({ isPublic: false });
      await studio.reload();
      await studio.press(english.play, studio.tracks.first());
      const file = (await studio.audio.getAttribute('src')) ?? '';
      // The player has all of it, and asks for nothing more.
      await eventually(
        () => studio.audio.evaluate((audio: HTMLAudioElement) => audio.networkState === audio.NETWORK_IDLE),
        'the file',
      );
      // Whatever arrives upstream from now on was sent by a foreign page.
      await studio.page.close();
      const before = world.gate.calls.length;
      await using foreign = openForeignSite(host);
      const page = await visitor.open(`${foreign.origin}/`);
      expect(await fetchAll(page, gatewayUrl)).toEqual(CALLS.map(() => 'rejected'));
      expect(await loadAll(page, file)).toEqual(['error', 'error', 'error']);
      for (const path of ['/api/auth/logout', '/api/music/generate', '/api/upstream/v1/music']) {
        expect([path, await submitForm(page, gatewayUrl + path)]).toEqual([path, 403]);
        await page.goto(`${foreign.origin}/`);
      }
      expect(world.gate.calls.slice(before)).toEqual([]);
      expect(await visitor.context.cookies(gatewayUrl)).toHaveLength(2);
    },
  );
});
