/** Tests in a real Chromium. A page in which something goes wrong fails its test. */

import { expect, onTestFinished } from 'bun:test';
import type { Browser, BrowserContext, BrowserContextOptions, ConsoleMessage } from 'playwright-core';
import { chromium } from 'playwright-core';
import { eventually } from '../support/eventually.ts';
import { describeWith, program } from '../support/requirements.ts';

export const CHROMIUM = program('chromium');

/** How each of them is launched. */
export const CHROMIUM_LAUNCH = {
  executablePath: Bun.which(CHROMIUM.name) ?? CHROMIUM.name,
  args: [
    // A container's root has no sandbox of its own to give.
    '--no-sandbox',
    '--disable-gpu',
    // A proxy of the tests has a certificate that nobody trusts.
    '--ignore-certificate-errors',
    '--autoplay-policy=no-user-gesture-required',
  ],
};
/** Where no part of the page is folded away. */
export const ROOMY = { width: 1280, height: 960 };
/** Far more than any step takes, because a machine may have many other things to do. */
const TIMEOUT_MS = 30_000;
const LATE_PROBLEM_MS = 5_000;
const PROBLEMS = ['error', 'warning', 'assert'];

/** Describes tests that need Chromium. */
export function describeInChromium(name: string, tests: () => void): void {
  describeWith([CHROMIUM], name, tests);
}

/** One browser for all tests of this process, with which it ends. */
let running: Browser | undefined;

/** A person with a context of the browser, without cookies, cache or service worker of another test. */
export async function visit(options: BrowserContextOptions = {}) {
  // A test that takes too long ends the processes that it sees, and with them the browser.
  if (!running?.isConnected()) running = await chromium.launch(CHROMIUM_LAUNCH);
  const browser = running;
  const context = await browser.newContext({ locale: 'en-GB', viewport: ROOMY, ...options });
  context.setDefaultTimeout(TIMEOUT_MS);
  const problems: string[] = [];
  await watch(context, (problem) => problems.push(problem));
  const expected: RegExp[] = [];
  const tolerated: RegExp[] = [];
  const missing = () => expected.filter((text) => !problems.some((problem) => text.test(problem)));
  let found: readonly string[] = [];
  // Not on disposal: an error there would hide the one that the test itself has failed with.
  onTestFinished(() => {
    const known = [...expected, ...tolerated];
    expect(found.filter((problem) => !known.some((text) => text.test(problem)))).toEqual([]);
    expect(missing()).toEqual([]);
  });
  return {
    context,
    /** Opens a tab. */
    async open(address: string) {
      const page = await context.newPage();
      await page.goto(address);
      return page;
    },
    /** Expects a problem in the console. It must occur, and any other problem fails the test. */
    expectProblem: (text: RegExp) => void expected.push(text),
    /** Allows a problem that may or may not occur. */
    tolerateProblem: (text: RegExp) => void tolerated.push(text),
    async [Symbol.asyncDispose]() {
      // Messages of the console arrive late. What is still missing then fails the test when it has finished.
      await eventually(() => missing().length === 0, 'expected problems', LATE_PROBLEM_MS).catch(() => {});
      // Requests that break off because the browser closes are not a problem of the page.
      found = [...problems];
      await context.close();
    },
  };
}

/** Reports console errors and warnings, exceptions, CSP violations and failed requests of all tabs and workers. */
async function watch(context: BrowserContext, report: (problem: string) => void): Promise<void> {
  const listen = (message: ConsoleMessage) => {
    const { url } = message.location();
    if (PROBLEMS.includes(message.type())) report(`console: ${message.text()} (${url})`);
  };
  context.on('console', listen);
  context.on('serviceworker', (worker) => worker.on('console', listen));
  context.on('weberror', (error) => report(`exception: ${error.error().stack}`));
  context.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText;
    // Ended by the page itself: a cancelled wait, a player that has enough, a tab that goes elsewhere.
    if (reason !== 'net::ERR_ABORTED') report(`request: ${reason} (${request.method()} ${request.url()})`);
  });
  await context.addInitScript({
    content: `addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) =>
      console.error('CSP violation:', violatedDirective, blockedURI, sample));`,
  });
}
