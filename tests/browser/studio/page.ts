/** What a person does in the studio, by what they see: for the tests in Chromium. */

import type { Locator, Page } from 'playwright-core';
import { english, type TextKey } from '../../../src/demo/studio/english.ts';
import type { Visit, Visitor } from '../../support/chromium.ts';
import { type DemoWorld, type DemoWorldOptions, startDemoWorld } from '../../support/demo-world.ts';

/** Six seconds of the sandbox's audio. Chromium wants some 240 kB of a WAV before it plays the first of it. */
export const ENOUGH_TO_PLAY = 6 * 48_000;

export interface Order {
  readonly prompt?: string;
  readonly seconds?: number;
  readonly isPublic?: boolean;
}

type Texts = Readonly<Record<TextKey, string>>;

/** Goes through the identity provider's form. */
export async function signIn(page: Page, name: string): Promise<void> {
  await button(page, 'Sign in').click();
  await page.getByRole('textbox', { name: 'Name' }).fill(name);
  await button(page, 'Sign in').click();
  await region(page, english.session).getByText(name).waitFor();
}

/** A tab of the studio, of somebody who has signed in before: Ada. */
export async function openSignedIn(
  visitor: Visitor,
  world: DemoWorld,
  texts: Texts = english,
): Promise<Page> {
  const cookies = await world.signIn('Ada');
  await visitor.context.addCookies(
    cookies.map(({ name, value }) => ({
      name,
      value,
      url: world.gatewayUrl,
      httpOnly: true,
      sameSite: 'Lax',
    })),
  );
  const page = await visitor.open(world.studioUrl);
  await region(page, texts.session).getByText('Ada').waitFor();
  await loaded(page, texts);
  return page;
}

/** The studio of Ada, who has signed in before, with a browser and a world of its own. */
export async function openStudio(
  visit: Visit,
  { texts, ...options }: DemoWorldOptions & { readonly texts?: Texts } = {},
  browser: Parameters<Visit>[0] = {},
) {
  await using stack = new AsyncDisposableStack();
  const world = stack.use(await startDemoWorld(options));
  const visitor = stack.use(await visit(browser));
  const page = await openSignedIn(visitor, world, texts);
  const opened = stack.move();
  return { world, visitor, page, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/** Waits until all that belongs to the session is there, and the service worker that plays what still arrives. */
export async function loaded(page: Page, texts: Texts = english): Promise<void> {
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  await page.getByRole('combobox', { name: texts.model }).filter({ hasText: 'Sandbox' }).waitFor();
  await page.getByText(texts.libraryLoading).waitFor({ state: 'hidden' });
  const account = region(page, texts.account);
  await account.filter({ hasText: texts.activitySignIn }).filter({ hasNotText: texts.none }).waitFor();
}

/** Fills in the form and presses Generate. */
export async function order(
  page: Page,
  { prompt = 'Rain on a tin roof', seconds = 3, isPublic }: Order = {},
) {
  await page.getByRole('textbox', { name: 'Prompt' }).fill(prompt);
  await page.getByRole('spinbutton', { name: 'Length' }).fill(String(seconds));
  if (isPublic !== undefined) await page.getByRole('checkbox', { name: 'Public' }).setChecked(isPublic);
  await button(page, 'Generate').click();
}

/** Orders a track and waits until it is in the library. */
export async function generate(page: Page, wanted: Order = {}): Promise<void> {
  const before = await tracks(page).count();
  await order(page, wanted);
  await said(page, english.complete);
  await tracks(page).nth(before).waitFor();
}

export function button(page: Page | Locator, name: string): Locator {
  return page.getByRole('button', { name, exact: true });
}

export function region(page: Page, name: string): Locator {
  return page.getByRole('region', { name, exact: true });
}

/** The tracks of the library, newest first. */
export function tracks(page: Page): Locator {
  return page.getByRole('list', { name: 'Library' }).getByRole('listitem');
}

/** Presses Share on the newest track, which is public, and gives the link that it shows. */
export async function sharedLink(page: Page): Promise<string> {
  const track = tracks(page).first();
  await button(track, 'Share').click();
  return (await track.getByRole('link').textContent()) ?? '';
}

/** Waits until the live region says so. */
export async function said(page: Page, text: string): Promise<void> {
  await page.getByRole('status').filter({ hasText: text }).waitFor();
}

/** Waits for the one alert that is shown, and gives its text. */
export async function alertText(page: Page): Promise<string> {
  return (await page.getByRole('alert').filter({ hasText: /\S/ }).textContent()) ?? '';
}

/** Waits until the player has got beyond so many seconds. */
export async function playedBeyond(page: Page, seconds: number): Promise<void> {
  await page.waitForFunction((least) => (document.querySelector('audio')?.currentTime ?? 0) > least, seconds);
}

/** What a person would have to wait for: everything is heard, only faster. */
export async function hurry(page: Page): Promise<void> {
  await page.locator('audio').evaluate((audio: HTMLAudioElement) => {
    audio.playbackRate = 16;
  });
}

/** What the audio element loads from now on. */
export async function loads(page: Page): Promise<() => Promise<readonly string[]>> {
  const sources = await page.locator('audio').evaluateHandle((audio: HTMLAudioElement) => {
    const found: string[] = [];
    audio.addEventListener('loadstart', () => found.push(new URL(audio.src).pathname));
    return found;
  });
  return () => sources.jsonValue();
}

export async function ended(page: Page): Promise<void> {
  await page.waitForFunction(() => document.querySelector('audio')?.ended === true);
}
