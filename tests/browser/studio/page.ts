/** The Studio as a person uses it and sees it, for the tests in Chromium. */

import type { Locator, Page } from 'playwright-core';
import { english, type TextKey } from '../../../src/demo/studio/english.ts';
import type { Visit, Visitor } from '../../support/chromium.ts';
import { type DemoWorld, type DemoWorldOptions, startDemoWorld } from '../../support/demo-world.ts';

/** Six seconds of the sandbox's audio. Chromium wants some 240 kB of a WAV before it plays the first of it. */
const ENOUGH_TO_PLAY = 6 * 48_000;

export interface Order {
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
  readonly prompt: Locator;
  readonly length: Locator;
  readonly #texts: Texts;
  readonly #onSignOut: () => void;

  constructor(page: Page, texts: Texts = english, onSignOut = () => {}) {
    this.page = page;
    this.#texts = texts;
    this.#onSignOut = onSignOut;
    this.audio = page.locator('audio');
    this.slider = page.getByRole('slider', { name: texts.position });
    this.tracks = page.getByRole('list', { name: texts.library }).getByRole('listitem');
    this.prompt = page.getByRole('textbox', { name: texts.prompt });
    this.length = page.getByRole('spinbutton', { name: texts.length });
  }

  button(name: string, within: Page | Locator = this.page): Locator {
    return within.getByRole('button', { name, exact: true });
  }

  press(name: string, within?: Locator): Promise<void> {
    if (name === this.#texts.signOut) this.#onSignOut();
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

  /** Waits for the one alert that is shown, and gives its text. */
  async alertText(): Promise<string> {
    return (await this.page.getByRole('alert').filter({ hasText: /\S/ }).textContent()) ?? '';
  }

  /** Opens what the gateway did, and gives it. */
  async openGatewayPanel(): Promise<Locator> {
    const panel = this.region(this.#texts.gatewayDid);
    await panel.getByRole('heading', { name: this.#texts.gatewayDid }).click();
    return panel;
  }

  /** Goes through the identity provider's form. */
  async signIn(name: string): Promise<void> {
    await this.press(this.#texts.signIn);
    await this.page.getByRole('textbox', { name: 'Name' }).fill(name);
    await this.press('Sign in');
    const shown = this.region(this.#texts.account).getByText(name).waitFor();
    await shown.catch(async (cause) => {
      const text = await this.page.locator('body').ariaSnapshot();
      throw new Error(`${name} is not signed in at ${this.page.url()}: ${text}`, { cause });
    });
  }

  /** Waits until all that belongs to the session is there, and the service worker that plays what still arrives. */
  async isLoaded(): Promise<void> {
    const [page, texts] = [this.page, this.#texts];
    await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
    await page.getByRole('combobox', { name: texts.model }).filter({ hasText: 'Sandbox' }).waitFor();
    await this.hides(texts.libraryLoading);
    const account = this.region(texts.account);
    await account.filter({ hasText: texts.activitySignIn }).filter({ hasNotText: texts.none }).waitFor();
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
    const lines = this.page.getByRole('list', { name: this.#texts.underWay }).getByRole('listitem');
    // The text of the track before says the same, and may stay for a moment.
    await lines.evaluateAll((earlier) => {
      for (const line of earlier) line.setAttribute('data-earlier', '');
    });
    await this.order(wanted);
    await lines.and(this.page.locator(':not([data-earlier])')).getByText(this.#texts.complete).waitFor();
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

  /** Plays the rest as fast as the browser can, instead of at the pace at which a person listens. */
  async playsToEnd(): Promise<void> {
    // The default is the rate of what is loaded from now on.
    const rates = { playbackRate: 16, defaultPlaybackRate: 16 };
    await this.audio.evaluate((audio, rates) => void Object.assign(audio, rates), rates);
    await this.ends();
  }

  /** Waits until the track has ended. */
  async ends(): Promise<void> {
    await this.page.waitForFunction(() => document.querySelector('audio')?.ended === true);
  }

  /** The keys under which this tab keeps orders whose outcome is not known. */
  unfinished(): Promise<readonly string[]> {
    return this.page.evaluate(() =>
      Object.keys(sessionStorage).filter((key) => key.startsWith('music-gateway.generations')),
    );
  }

  /** What the audio element loads from now on. */
  async loads(): Promise<() => Promise<readonly string[]>> {
    const sources = await this.audio.evaluateHandle((audio: HTMLAudioElement) => {
      const found: string[] = [];
      audio.addEventListener('loadstart', () => found.push(new URL(audio.src).pathname));
      return found;
    });
    return () => sources.jsonValue();
  }
}

export interface StudioOptions extends DemoWorldOptions {
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

/** The Studio with a browser and a world of its own. */
export async function openStudio(
  visit: Visit,
  { isSignedIn = true, texts, ...options }: StudioOptions = {},
  browser: Parameters<Visit>[0] = {},
) {
  await using stack = new AsyncDisposableStack();
  const world = stack.use(await startDemoWorld(options));
  const visitor = stack.use(await visit(browser));
  if (isSignedIn) await signInBehind(world, visitor, 'Ada');
  // A sign-out breaks off the audio that the player still loads.
  const onSignOut = () => visitor.tolerateProblem(/INCOMPLETE_CHUNKED_ENCODING.*\/content/);
  const studio = new Studio(await visitor.open(world.studioUrl), texts, onSignOut);
  if (isSignedIn) await studio.isLoaded();
  const opened = stack.move();
  return Object.assign(studio, {
    ...{ world, visitor, upstream: world.upstream },
    /** Leaves the page, and comes back to it in the same tab as somebody who has signed in meanwhile. */
    async returnAs(name: string) {
      await studio.page.goto(`${world.studioUrl}/config.json`);
      await signInBehind(world, visitor, name);
      await studio.page.goto(world.studioUrl);
    },
    /** Lets the upstream say that the track that arrives is being made, until the test ends that. */
    async staysUnfinished() {
      const id = await studio.page.evaluate(() => {
        const [kept] = Object.values(sessionStorage).filter((value) => value.includes('creationId'));
        return JSON.parse(kept)[0].creationId;
      });
      const { replace } = world.gate;
      const file = replace(
        `HEAD /v1/music/creations/${id}/content`,
        () => new Response(null, { status: 409 }),
      );
      const list = replace('GET /v1/music/creations', async (forward) => {
        const text = await (await forward()).text();
        return new Response(text.replace('"ready"', '"generating"'));
      });
      return {
        end() {
          file.giveBack();
          list.giveBack();
        },
      };
    },
    /** Lets the gateway refuse the files of all tracks until the test ends that. */
    async refuseFiles() {
      const files = '**/v1/music/creations/*/content';
      const headers = {
        'access-control-allow-origin': world.studioUrl,
        'access-control-allow-credentials': 'true',
      };
      await studio.page.route(files, (route) => route.fulfill({ status: 404, headers }));
      return { end: () => studio.page.unroute(files) };
    },
    /** Orders a track of which only the first seconds arrive until the test releases the rest. */
    async orderHeld(wanted: Order = {}) {
      const audio = world.gate.holdAudio(ENOUGH_TO_PLAY);
      await studio.order({ seconds: 10, ...wanted });
      return audio;
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  });
}
