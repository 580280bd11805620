import { expect, it } from 'bun:test';
import { describeInChromium, type Visit } from '../../support/chromium.ts';
import { openForeignSite } from '../../support/foreign-site.ts';
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

/**
 * The browser of a signed-in user with a private track, a page of another site, and one of the studio's own site: it
 * is on another port of `localhost`, and its calls carry the cookies. No tab of the studio is open, so whatever
 * arrives upstream from now on was sent by a foreign page.
 */
async function openVictim(visit: Visit) {
  await using stack = new AsyncDisposableStack();
  const { world, visitor, page: studio } = stack.use(await openStudio(visit));
  visitor.tolerateProblem(REFUSALS);
  const creationId = await studio.evaluate(
    async ({ url, order }) => {
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(url, { method: 'POST', credentials: 'include', headers, body: order });
      await response.arrayBuffer();
      return response.headers.get('x-music-creation-id');
    },
    { url: `${world.gatewayUrl}/api/music/generate`, order: ORDER },
  );
  await studio.close();
  const contentUrl = `${world.gatewayUrl}/api/upstream/v1/music/creations/${creationId}/content`;
  const callsBefore = world.gate.calls.length;
  const elsewhere = stack.use(openForeignSite('127.0.0.1'));
  const own = stack.use(openForeignSite('localhost'));
  const places = [
    ['127.0.0.1', await visitor.open(`${elsewhere.origin}/`)],
    ['localhost', await visitor.open(`${own.origin}/`)],
  ] as const;
  const { context } = visitor;
  const { gatewayUrl } = world;
  const opened = stack.move();
  return {
    ...{ places, own, context, gatewayUrl, contentUrl },
    forgedCalls: () => world.gate.calls.slice(callsBefore),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

describeInChromium('a page on a foreign origin', (visit) => {
  it('reads nothing with fetch, and plays and embeds nothing of a private track', async () => {
    await using victim = await openVictim(visit);
    for (const [place, page] of victim.places) {
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
        { base: victim.gatewayUrl, calls: CALLS },
      );
      expect([place, ...outcomes]).toEqual([place, ...CALLS.map(() => 'rejected')]);

      const elements = await page.evaluate((url) => {
        const outcome = (element: HTMLImageElement | HTMLAudioElement) => {
          const { promise, resolve } = Promise.withResolvers<string>();
          for (const event of ['error', 'load', 'loadeddata']) {
            element.addEventListener(event, () => resolve(event));
          }
          element.src = url;
          document.body.append(element);
          return promise;
        };
        const withCookies = Object.assign(new Audio(), { crossOrigin: 'use-credentials' });
        return Promise.all([withCookies, new Audio(), new Image()].map(outcome));
      }, victim.contentUrl);
      expect([place, ...elements]).toEqual([place, 'error', 'error', 'error']);
    }
    expect(victim.forgedCalls()).toEqual([]);
  });

  it('neither generates nor signs a user out with a form', async () => {
    await using victim = await openVictim(visit);
    for (const [place, home] of victim.places) {
      for (const path of ['/api/auth/logout', '/api/music/generate', '/api/upstream/v1/music']) {
        const page = await victim.context.newPage();
        await page.goto(home.url());
        const response = page.waitForResponse(victim.gatewayUrl + path);
        await page.evaluate(
          ({ action, order }) => {
            const form = document.createElement('form');
            Object.assign(form, { action, method: 'post', enctype: 'text/plain' });
            // Sent as `name=value`, which makes JSON of the order with one field more.
            const field = document.createElement('input');
            Object.assign(field, { name: `${order.slice(0, -1)},"more":"`, value: '"}' });
            form.append(field);
            document.body.append(form);
            form.submit();
          },
          { action: victim.gatewayUrl + path, order: ORDER },
        );
        expect([place, path, (await response).status()]).toEqual([place, path, 403]);
      }
    }
    expect(victim.forgedCalls()).toEqual([]);
    expect(await victim.context.cookies(victim.gatewayUrl)).toHaveLength(2);
  });

  it('sends no session cookies along when it is of another site', async () => {
    await using victim = await openVictim(visit);
    const { own } = victim;
    // Cookies know no ports: what the gateway would get, another server on its host gets.
    for (const [from, page] of victim.places) {
      await page.evaluate(
        async ({ base, from }) => {
          await fetch(`${base}/fetch-from-${from}`, { mode: 'no-cors', credentials: 'include' });
          const form = document.createElement('form');
          Object.assign(form, { action: `${base}/form-from-${from}`, method: 'post' });
          document.body.append(form);
          form.submit();
        },
        { base: own.origin, from },
      );
      await page.waitForURL('**/form-from-*');
    }
    const session = ['svc_music_access', 'svc_music_refresh'];
    expect(own.cookies.get('/fetch-from-localhost')).toEqual(session);
    expect(own.cookies.get('/form-from-localhost')).toEqual(session);
    expect(own.cookies.get('/fetch-from-127.0.0.1')).toEqual([]);
    expect(own.cookies.get('/form-from-127.0.0.1')).toEqual([]);
  });
});
