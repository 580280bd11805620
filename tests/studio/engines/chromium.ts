/** Chromium with the profile and the sound of a person, driven by Playwright. */

import { chromium as playwright } from 'playwright-core';
import { CHROMIUM, CHROMIUM_LAUNCH } from '../chromium.ts';
import type { Engine } from './browser-engine.ts';

export const chromium: Engine = {
  name: 'Chromium',
  requirements: [CHROMIUM],
  playbackRetries: 0,
  canSeek: true,
  async launch() {
    const browser = await playwright.launch(CHROMIUM_LAUNCH);
    const page = await browser.newPage();
    return {
      open: (url) => page.goto(url),
      evaluate: (expression) => page.evaluate(expression),
      type: (text) => page.keyboard.type(text),
      [Symbol.asyncDispose]: () => browser.close(),
    };
  },
};
