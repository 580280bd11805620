/** The Studio as a person uses it and sees it, for the tests in Chromium. */

import type { BrowserContextOptions, Locator, Page } from 'playwright-core';
import { english, type TextKey } from '../../../src/demo/studio/english.ts';
import { visit } from '../chromium.ts';
import { type DemoWorldOptions, startDemoWorld } from '../demo-world.ts';

/** Six seconds of the sandbox's audio. Chromium wants some 240 kB of a WAV before it plays the first of it. */
const ENOUGH_TO_PLAY = 6 * 48_000;

interface Order {
  readonly prompt?: string;
  readonly seconds?: number;
  readonly isPublic?: boolean;
}

type Texts = Readonly<Record<TextKey, string>>;

export type Studio = ReturnType<typeof studioIn>;

/** The Studio in a tab. What is named after something seen or heard waits for it. */
export function studioIn(page: Page, texts: Texts = english) {
  const region = (name: string) => page.getByRole('region', { name, exact: true });
  const itemsOf = (name: string) => page.getByRole('list', { name }).getByRole('listitem');
  const audio = page.locator('audio');
  const tracks = itemsOf(texts.library);
  const lines = itemsOf(texts.underWay);
  const prompt = page.getByRole('textbox', { name: texts.prompt });
  const length = page.getByRole('spinbutton', { name: texts.length });
  const alert = page.getByRole('alert').filter({ hasText: /\S/ });
  /** In a row of the library, the title of the track follows in its name. */
  const button = (name: string, within?: Locator) =>
    within
      ? within.getByRole('button', { name: new RegExp(`^${RegExp.escape(name)}(?: |$)`) })
      : page.getByRole('button', { name, exact: true });
  const press = (name: string, within?: Locator) => button(name, within).click();
  const hides = (text: string) => page.getByText(text).waitFor({ state: 'hidden' });
  const accountShows = (text: string) => region(texts.account).getByText(text).waitFor();

  /** Waits until the page knows whether there is a session, and has the service worker that plays what arrives. */
  async function isReady(): Promise<void> {
    await page.waitForFunction(
      () => navigator.serviceWorker.controller !== null && document.body.dataset['session'] !== 'unknown',
    );
  }

  /** Waits until all that belongs to the session is there too. */
  async function isLoaded(): Promise<void> {
    await isReady();
    await page.getByRole('combobox', { name: texts.model }).filter({ hasText: 'Sandbox' }).waitFor();
    await hides(texts.libraryLoading);
    const account = region(texts.account).filter({ hasText: texts.activitySignIn });
    await account.filter({ hasNotText: texts.none }).waitFor();
  }

  /** Fills in the form and presses Generate. */
  async function order({ prompt: text = 'Rain on a tin roof', seconds = 3, isPublic }: Order = {}) {
    await prompt.fill(text);
    await length.fill(String(seconds));
    if (isPublic !== undefined) await page.getByRole('checkbox', { name: 'Public' }).setChecked(isPublic);
    await press(texts.generate);
  }

  return {
    ...{ page, region, audio, lines, prompt, length, alert, button, press, hides, accountShows },
    ...{ isReady, isLoaded, order },
    /** Newest first. */
    tracks,
    /** What can be heard before a sign-in. */
    pieces: itemsOf(texts.pieces),
    slider: page.getByRole('slider', { name: texts.position }),
    shows: (text: string) => page.getByText(text).waitFor(),
    /** In the live region. */
    says: (text: string) => page.getByRole('status').filter({ hasText: text }).waitFor(),
    warns: (text: string) => alert.filter({ hasText: text }).waitFor(),
    /** Goes through the identity provider's form. */
    async signIn(name: string) {
      await press(texts.signIn);
      await page.getByRole('textbox', { name: 'Name' }).fill(name);
      await press('Sign in');
      await accountShows(name);
    },
    async reload() {
      await page.reload();
      await isLoaded();
    },
    /** Orders a track and waits until it is in the library. */
    async generate(wanted: Order = {}) {
      const before = await tracks.count();
      await order(wanted);
      await lines.last().getByText(texts.complete).waitFor();
      await tracks.nth(before).waitFor();
    },
    /** Presses Share on the newest track, which is public, and gives the link that it shows. */
    async sharedLink() {
      await press(english.share, tracks.first());
      return (await tracks.first().getByRole('link').textContent()) ?? '';
    },
    /** Waits until the player has got beyond so many seconds. */
    async playsBeyond(seconds: number) {
      const isBeyond = (seconds: number) => (document.querySelector('audio')?.currentTime ?? 0) > seconds;
      await page.waitForFunction(isBeyond, seconds);
    },
    /** How many keys this tab has of orders whose outcome is not known. */
    unfinished: () =>
      page.evaluate(
        () => Object.keys(sessionStorage).filter((key) => key.startsWith('music-gateway.generations')).length,
      ),
  };
}

interface StudioOptions extends DemoWorldOptions {
  /** Whether Ada has signed in before, which is the default. */
  readonly isSignedIn?: boolean;
  readonly texts?: Texts;
}

/** The Studio with a browser context and a world of its own. */
export async function openStudio(
  { isSignedIn = true, texts, ...options }: StudioOptions = {},
  browser: BrowserContextOptions = {},
) {
  await using stack = new AsyncDisposableStack();
  const world = stack.use(await startDemoWorld(options));
  const visitor = stack.use(await visit(browser));
  // A sign-out and the end of a page break off the audio that the player still loads.
  visitor.tolerateProblem(/INCOMPLETE_CHUNKED_ENCODING.*\/content/);
  // The page does not check the session by the clock, so that only what the test does leads to a check.
  await visitor.context.addInitScript('globalThis.setInterval = () => 0');
  /** Signs in without the page, which does not learn of it. */
  const signInBehind = async (name: string) => {
    const request = { data: await world.grant(name), headers: { origin: world.studioUrl } };
    await visitor.context.request.post(`${world.gatewayUrl}/api/auth/idp`, request);
  };
  if (isSignedIn) await signInBehind('Ada');
  const studio = studioIn(await visitor.open(world.studioUrl), texts);
  await (isSignedIn ? studio.isLoaded() : studio.isReady());
  const { gate, upstream } = world;
  const opened = stack.move();
  return {
    ...studio,
    ...{ world, visitor, gate, upstream, signInBehind },
    /** The same studio in another tab. */
    async openTab() {
      const tab = studioIn(await visitor.open(world.studioUrl), texts);
      await tab.isReady();
      return tab;
    },
    /** Lets the upstream accept the next order, and the response to it be lost: there is this one, or none. */
    loseResponse(response?: Response) {
      const accepted = Promise.withResolvers<void>();
      const lost = gate.replace('POST /v1/music', async (forward) => {
        lost.giveBack();
        await (await forward()).body?.cancel();
        accepted.resolve();
        return response ?? new Promise<Response>(() => {});
      });
      return accepted.promise;
    },
    /** Orders a track of which only the first seconds arrive until the test releases the rest. */
    async orderHeld(wanted: Order = {}) {
      const audio = gate.holdAudio(ENOUGH_TO_PLAY);
      await studio.order({ seconds: 10, ...wanted });
      return audio;
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
