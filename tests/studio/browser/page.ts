/** The Studio as a person uses it and sees it, for the tests in Chromium. */

import type { Locator, Page } from 'playwright-core';
import { english, type TextKey } from '../../../src/demo/studio/english.ts';
import type { Visit, Visitor } from '../chromium.ts';
import { type DemoWorld, type DemoWorldOptions, startDemoWorld } from '../demo-world.ts';

/** Six seconds of the sandbox's audio. Chromium wants some 240 kB of a WAV before it plays the first of it. */
const ENOUGH_TO_PLAY = 6 * 48_000;

interface Order {
  readonly prompt?: string;
  readonly seconds?: number;
  readonly isPublic?: boolean;
}

type Texts = Readonly<Record<TextKey, string>>;

/** One tab. */
export class Studio {
  readonly page: Page;
  readonly audio: Locator;
  readonly slider: Locator;
  /** The tracks of the library, newest first. */
  readonly tracks: Locator;
  /** The tracks that are being made. */
  readonly lines: Locator;
  readonly player: Locator;
  readonly prompt: Locator;
  readonly length: Locator;
  readonly alert: Locator;
  readonly #texts: Texts;

  constructor(page: Page, texts: Texts = english) {
    this.page = page;
    this.#texts = texts;
    this.audio = page.locator('audio');
    this.slider = page.getByRole('slider', { name: texts.position });
    this.tracks = page.getByRole('list', { name: texts.library }).getByRole('listitem');
    this.lines = page.getByRole('list', { name: texts.underWay }).getByRole('listitem');
    this.player = this.region(texts.player);
    this.prompt = page.getByRole('textbox', { name: texts.prompt });
    this.length = page.getByRole('spinbutton', { name: texts.length });
    this.alert = page.getByRole('alert').filter({ hasText: /\S/ });
  }

  /** In a row of the library, the title of the track follows in its name. */
  button(name: string, within?: Locator): Locator {
    if (!within) return this.page.getByRole('button', { name, exact: true });
    return within.getByRole('button', { name: new RegExp(`^${RegExp.escape(name)}(?: |$)`) });
  }

  press(name: string, within?: Locator): Promise<void> {
    return this.button(name, within).click();
  }

  region(name: string): Locator {
    return this.page.getByRole('region', { name, exact: true });
  }

  /** Waits until a text is shown. */
  shows(text: string): Promise<void> {
    return this.page.getByText(text).waitFor();
  }

  /** Waits until a text is not shown, or no longer. */
  hides(text: string): Promise<void> {
    return this.page.getByText(text).waitFor({ state: 'hidden' });
  }

  /** Waits until the live region says so. */
  says(text: string): Promise<void> {
    return this.page.getByRole('status').filter({ hasText: text }).waitFor();
  }

  /** Waits until an alert has this text. */
  warns(text: string): Promise<void> {
    return this.alert.filter({ hasText: text }).waitFor();
  }

  /** Waits until the account has this text. */
  accountShows(text: string): Promise<void> {
    return this.region(this.#texts.account).getByText(text).waitFor();
  }

  /** Goes through the identity provider's form. */
  async signIn(name: string): Promise<void> {
    await this.press(this.#texts.signIn);
    await this.page.getByRole('textbox', { name: 'Name' }).fill(name);
    await this.press('Sign in');
    await this.accountShows(name);
  }

  /** Waits until the page knows whether there is a session, and has the service worker that plays what arrives. */
  async isReady(): Promise<void> {
    const isReady = () =>
      navigator.serviceWorker.controller !== null && document.body.dataset['session'] !== 'unknown';
    await this.page.waitForFunction(isReady);
  }

  /** Waits until all that belongs to the session is there too. */
  async isLoaded(): Promise<void> {
    const texts = this.#texts;
    await this.isReady();
    await this.page.getByRole('combobox', { name: texts.model }).filter({ hasText: 'Sandbox' }).waitFor();
    await this.hides(texts.libraryLoading);
    const account = this.region(texts.account);
    await account.filter({ hasText: texts.activitySignIn }).filter({ hasNotText: texts.none }).waitFor();
  }

  async reload(): Promise<void> {
    await this.page.reload();
    await this.isLoaded();
  }

  /** Fills in the form and presses Generate. */
  async order({ prompt = 'Rain on a tin roof', seconds = 3, isPublic }: Order = {}): Promise<void> {
    await this.prompt.fill(prompt);
    await this.length.fill(String(seconds));
    if (isPublic !== undefined)
      await this.page.getByRole('checkbox', { name: 'Public' }).setChecked(isPublic);
    await this.press(this.#texts.generate);
  }

  /** Orders a track and waits until it is in the library. */
  async generate(wanted: Order = {}): Promise<void> {
    const before = await this.tracks.count();
    // The text of the track before says the same, and may stay for a moment.
    await this.lines.evaluateAll((earlier) => {
      for (const line of earlier) line.setAttribute('data-earlier', '');
    });
    await this.order(wanted);
    await this.lines.and(this.page.locator(':not([data-earlier])')).getByText(this.#texts.complete).waitFor();
    await this.tracks.nth(before).waitFor();
  }

  /** Presses Share on the newest track, which is public, and gives the link that it shows. */
  async sharedLink(): Promise<string> {
    const track = this.tracks.first();
    await this.press(english.share, track);
    return (await track.getByRole('link').textContent()) ?? '';
  }

  /** Waits until the player has got beyond so many seconds. */
  async playsBeyond(seconds: number): Promise<void> {
    await this.page.waitForFunction(
      (least) => (document.querySelector('audio')?.currentTime ?? 0) > least,
      seconds,
    );
  }

  /** Plays what is loaded, now and later, faster than a person listens. */
  async playsAtRate(playbackRate: number): Promise<void> {
    const rates = { playbackRate, defaultPlaybackRate: playbackRate };
    await this.audio.evaluate((audio, rates) => void Object.assign(audio, rates), rates);
  }

  /** Plays the rest as fast as the browser can. */
  async playsToEnd(): Promise<void> {
    await this.playsAtRate(16);
    await this.page.waitForFunction(() => document.querySelector('audio')?.ended);
  }

  /** How many keys this tab has of orders whose outcome is not known. */
  unfinished(): Promise<number> {
    return this.page.evaluate(
      () => Object.keys(sessionStorage).filter((key) => key.startsWith('music-gateway.generations')).length,
    );
  }

  /** What the audio element loads from now on: for each source, whether it is the file, and not a stream. */
  async loads(): Promise<() => Promise<readonly boolean[]>> {
    const sources = await this.audio.evaluateHandle((audio: HTMLAudioElement) => {
      const found: boolean[] = [];
      audio.addEventListener('loadstart', () => found.push(audio.src.endsWith('/content')));
      return found;
    });
    return () => sources.jsonValue();
  }
}

interface StudioOptions extends DemoWorldOptions {
  /** Whether Ada has signed in before, which is the default. */
  readonly isSignedIn?: boolean;
  readonly texts?: Texts;
}

/** Signs in without the page, which does not learn of it. */
export async function signInBehind(world: DemoWorld, { context }: Visitor, name: string): Promise<void> {
  const cookies = await world.signIn(name);
  const attributes = { url: world.gatewayUrl, httpOnly: true, sameSite: 'Lax' } as const;
  await context.addCookies(cookies.map(({ name, value }) => ({ name, value, ...attributes })));
}

/** The Studio with a browser context and a world of its own. */
export async function openStudio(
  visit: Visit,
  { isSignedIn = true, texts, ...options }: StudioOptions = {},
  browser: Parameters<Visit>[0] = {},
) {
  await using stack = new AsyncDisposableStack();
  const world = stack.use(await startDemoWorld(options));
  const visitor = stack.use(await visit(browser));
  // A sign-out and the end of a page break off the audio that the player still loads.
  visitor.tolerateProblem(/INCOMPLETE_CHUNKED_ENCODING.*\/content/);
  if (isSignedIn) await signInBehind(world, visitor, 'Ada');
  const studio = new Studio(await visitor.open(world.studioUrl), texts);
  await (isSignedIn ? studio.isLoaded() : studio.isReady());
  const { gate } = world;
  const opened = stack.move();
  return Object.assign(studio, {
    ...{ world, visitor, gate, upstream: world.upstream },
    /** The same studio in another tab. */
    async openTab() {
      const tab = new Studio(await visitor.open(world.studioUrl), texts);
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
  });
}
