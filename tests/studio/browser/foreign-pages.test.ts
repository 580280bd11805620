import { expect, it } from 'bun:test';
import type { Page } from 'playwright-core';
import { english } from '../../../src/demo/studio/english.ts';
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
  ['/api/upstream/v1/music/creations'],
  ['/api/auth/logout', 'POST'],
  ['/api/music/generate', 'POST', 'application/json', ORDER],
  ['/api/music/generate', 'POST', 'text/plain', ORDER],
  ['/api/upstream/v1/music', 'POST', 'text/plain', ORDER],
  ['/api/upstream/v1/music/creations/7', 'PATCH', 'application/json', '{"is_public":true}'],
] as const;

/** What the browser and the gateway say to what these pages try. */
const REFUSALS = /CORS policy|status of 40[03]|ERR_FAILED|ERR_BLOCKED/;
const SESSION = ['svc_music_access', 'svc_music_refresh'];

/** Submits a form whose only field, sent as `name=value`, makes JSON of the order with one field more. */
function submitForm(page: Page, action: string): Promise<void> {
  return page.evaluate(
    ({ action, order }) => {
      const form = document.createElement('form');
      Object.assign(form, { action, method: 'post', enctype: 'text/plain' });
      const field = document.createElement('input');
      Object.assign(field, { name: `${order.slice(0, -1)},"more":"`, value: '"}' });
      form.append(field);
      document.body.append(form);
      form.submit();
    },
    { action, order: ORDER },
  );
}

// `localhost` is the studio's own site, on another port, and its calls carry the cookies; `127.0.0.1` is another site.
describeInChromium('a page on a foreign origin of the host', (visit) => {
  it.each([
    ['localhost', SESSION],
    ['127.0.0.1', []],
  ])(
    '%s reads nothing of a signed-in user, plays nothing, generates nothing and signs nobody out',
    async (host, cookies) => {
      await using studio = await openStudio(visit);
      const { world, visitor } = studio;
      const { gatewayUrl } = world;
      visitor.tolerateProblem(REFUSALS);
      await studio.generate({ isPublic: false });
      await studio.reload();
      await studio.press(english.play, studio.tracks.first());
      const file = (await studio.audio.getAttribute('src')) ?? '';
      // Whatever arrives upstream from now on was sent by a foreign page.
      await studio.page.close();
      const before = world.gate.calls.length;
      await using foreign = openForeignSite(host);
      await using own = openForeignSite('localhost');
      const page = await visitor.open(`${foreign.origin}/`);
      const outcomes = await page.evaluate(
        ({ base, calls }) =>
          Promise.all(
            calls.map(async ([path, method = 'GET', type, body]) => {
              const headers = type ? { headers: { 'content-type': type }, body } : {};
              const init = { method, credentials: 'include', ...headers } as const;
              const rejected = () => 'rejected';
              // A page can do harm without reading the response.
              await fetch(base + path, { ...init, mode: 'no-cors' }).catch(rejected);
              return fetch(base + path, init).then(({ status }) => status, rejected);
            }),
          ),
        { base: gatewayUrl, calls: CALLS },
      );
      expect(outcomes).toEqual(CALLS.map(() => 'rejected'));

      const elements = await page.evaluate((url) => {
        const withCookies = Object.assign(new Audio(), { crossOrigin: 'use-credentials' });
        const outcomes = [withCookies, new Audio(), new Image()].map((element) => {
          const { promise, resolve } = Promise.withResolvers<string>();
          for (const type of ['error', 'load', 'loadeddata'])
            element.addEventListener(type, () => resolve(type));
          element.src = url;
          return promise;
        });
        return Promise.all(outcomes);
      }, file);
      expect(elements).toEqual(['error', 'error', 'error']);

      for (const path of ['/api/auth/logout', '/api/music/generate', '/api/upstream/v1/music']) {
        const response = page.waitForResponse(gatewayUrl + path);
        await submitForm(page, gatewayUrl + path);
        expect([path, (await response).status()]).toEqual([path, 403]);
        // The page is that of the refusal, and no navigation is under way.
        await page.waitForURL(gatewayUrl + path);
        await page.goto(`${foreign.origin}/`);
      }
      expect(world.gate.calls.slice(before)).toEqual([]);
      expect(await visitor.context.cookies(gatewayUrl)).toHaveLength(2);

      // Cookies know no ports: what the gateway would get, another server on its host gets.
      await page.evaluate(
        (url) => fetch(url, { mode: 'no-cors', credentials: 'include' }),
        `${own.origin}/fetch`,
      );
      await submitForm(page, `${own.origin}/form`);
      await page.waitForURL('**/form');
      expect([own.cookies.get('/fetch'), own.cookies.get('/form')]).toEqual([cookies, cookies]);
    },
  );
});
