/** A person with a browser of any engine: finds things by their names, clicks, and types. */

import { eventually } from '../../support/eventually.ts';
import type { EngineBrowser, InputSource } from './browser-engine.ts';

/** Everything takes long while a machine has many other things to do. */
const PATIENCE_MS = 40_000;
/** Each look at the page takes time from the page. */
const LOOK_EVERY_MS = 30;

interface Place {
  readonly x: number;
  readonly y: number;
}

export class Person implements AsyncDisposable {
  readonly #browser: EngineBrowser;

  constructor(browser: EngineBrowser) {
    this.#browser = browser;
  }

  open(address: string): Promise<void> {
    return this.#browser.open(address);
  }

  /** Calls the function in the page; what it takes and returns must be JSON. */
  async call<Args extends readonly unknown[], Value>(
    run: (...args: Args) => Value,
    ...args: Args
  ): Promise<Awaited<Value>> {
    const expression = `(async () => JSON.stringify(await ${callOf(run, args)}) ?? 'null')()`;
    return JSON.parse(await this.#browser.evaluate(expression));
  }

  /**
   * Calls the function again and again until it returns something truthy, and returns that.
   *
   * @param run returns no promise, because one that is pending in a page that is left may never be settled
   */
  async until<Args extends readonly unknown[], Value>(
    what: string,
    run: (...args: Args) => Value,
    ...args: Args
  ): Promise<NonNullable<Value>> {
    const expression = `JSON.stringify(${callOf(run, args)}) ?? 'null'`;
    const look = async (): Promise<Value | undefined> => {
      await Bun.sleep(LOOK_EVERY_MS);
      // A page that is being left cannot be asked.
      return JSON.parse(await this.#browser.evaluate(expression).catch(() => 'null'));
    };
    return eventually(look, what, PATIENCE_MS);
  }

  /** Waits until the page shows a text, in one line or several. */
  async sees(text: string): Promise<void> {
    const isShown = (text: string) => {
      // What is hidden is not seen, which `textContent` does not tell.
      // biome-ignore lint/performance/useDomNodeTextContent: see above
      return document.body.innerText.replace(/\s+/g, ' ').includes(text);
    };
    await this.until(`“${text}”`, isShown, text);
  }

  /** Clicks a button or field with this name, in the middle, as soon as it rests and nothing covers it. */
  async clicks(name: string): Promise<void> {
    let before: Place | undefined;
    const rest = async () => {
      const place = await this.until(`“${name}” to click on`, middleOf, name);
      const hasMoved = place.x !== before?.x || place.y !== before.y;
      before = place;
      return hasMoved ? undefined : place;
    };
    const { x, y } = await eventually(rest, `“${name}” to rest`, PATIENCE_MS);
    await this.#browser.perform({
      type: 'pointer',
      id: 'mouse',
      actions: [
        { type: 'pointerMove', x, y },
        { type: 'pointerDown', button: 0 },
        { type: 'pointerUp', button: 0 },
      ],
    });
  }

  /** Replaces what stands in a field. */
  async types(name: string, text: string): Promise<void> {
    await this.clicks(name);
    await this.call(() => {
      const field = document.activeElement;
      if (field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) field.select();
    });
    await this.#browser.perform(keysOf(text));
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#browser[Symbol.asyncDispose]();
  }
}

function callOf(run: (...args: never) => unknown, args: readonly unknown[]): string {
  return `(${run})(...${JSON.stringify(args)})`;
}

function keysOf(text: string): InputSource {
  const press = (value: string) => [{ type: 'keyDown', value } as const, { type: 'keyUp', value } as const];
  return { type: 'key', id: 'keyboard', actions: [...text].flatMap(press) };
}

/** Where to click; runs in the page. */
function middleOf(name: string): Place | undefined {
  const elements = document.querySelectorAll<HTMLButtonElement | HTMLInputElement | HTMLTextAreaElement>(
    'button, input, textarea',
  );
  const nameOf = (element: (typeof elements)[number]) =>
    (element.ariaLabel ?? element.labels?.[0]?.textContent ?? element.textContent).trim();
  const element = [...elements].find((element) => nameOf(element) === name && element.checkVisibility());
  if (!element || element.disabled) return undefined;
  element.scrollIntoView({ block: 'center', behavior: 'instant' });
  const { left, top, width, height } = element.getBoundingClientRect();
  const place = { x: Math.round(left + width / 2), y: Math.round(top + height / 2) };
  return element.contains(document.elementFromPoint(place.x, place.y)) ? place : undefined;
}
