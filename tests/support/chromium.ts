/** A real Chromium, started by the tests and gone after them; a page in which something goes wrong fails its test. */

import { afterAll, beforeAll, expect, onTestFinished } from 'bun:test';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type ConsoleMessage,
  chromium,
  type Page,
} from 'playwright-core';
import { describeWith, program } from './requirements.ts';

const CHROMIUM = program('chromium');

const ARGUMENTS = [
  // A container's root has no sandbox of its own to give.
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
  '--autoplay-policy=no-user-gesture-required',
];
const TIMEOUT_MS = 15_000;
const LATE_PROBLEM_MS = 5_000;
const PROBLEMS = ['error', 'warning', 'assert'];

/** Somebody with a browser of their own: no cookies, no cache, no service worker from another test. */
export interface Visitor extends AsyncDisposable {
  readonly context: BrowserContext;
  /** Opens a tab. */
  open(address: string): Promise<Page>;
  /**
   * Something that this test makes go wrong, as the console tells it. It must occur; whatever goes wrong beyond it
   * fails the test.
   */
  expectProblem(text: RegExp): void;
  /** Something that may or may not go wrong in this test. */
  tolerateProblem(text: RegExp): void;
}

export type Visit = (options?: BrowserContextOptions) => Promise<Visitor>;

/** Describes tests that need Chromium. */
export function describeInChromium(name: string, tests: (visit: Visit) => void): void {
  describeWith([CHROMIUM], name, () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await chromium.launch({
        executablePath: Bun.which(CHROMIUM.name) ?? CHROMIUM.name,
        args: ARGUMENTS,
      });
    });
    afterAll(() => browser.close());
    tests((options) => visit(browser, options));
  });
}

async function visit(browser: Browser, options: BrowserContextOptions = {}): Promise<Visitor> {
  const context = await browser.newContext({ locale: 'en-GB', ...options });
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
    async open(address) {
      const page = await context.newPage();
      await page.goto(address);
      return page;
    },
    expectProblem: (text) => void expected.push(text),
    tolerateProblem: (text) => void tolerated.push(text),
    async [Symbol.asyncDispose]() {
      // The console's messages come on their own way.
      const deadline = performance.now() + LATE_PROBLEM_MS;
      while (missing().length > 0 && performance.now() < deadline) await Bun.sleep(10);
      // What breaks off because the browser closes is no problem of the page.
      found = [...problems];
      await context.close();
    },
  };
}

/** Tells of console errors and warnings, exceptions, violations of the CSP and failed requests, from all tabs and workers. */
async function watch(context: BrowserContext, tell: (problem: string) => void): Promise<void> {
  const listen = (message: ConsoleMessage) => {
    const { url } = message.location();
    if (PROBLEMS.includes(message.type())) tell(`console: ${message.text()} (${url})`);
  };
  context.on('console', listen);
  context.on('serviceworker', (worker) => worker.on('console', listen));
  context.on('weberror', (error) => tell(`exception: ${error.error().stack}`));
  context.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText;
    // Ended by the page itself: a cancelled wait, a player that has enough, a tab that goes elsewhere.
    if (reason !== 'net::ERR_ABORTED') tell(`request: ${reason} (${request.method()} ${request.url()})`);
  });
  await context.addInitScript({
    content: `addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) =>
      console.error('CSP violation:', violatedDirective, blockedURI, sample));`,
  });
}
