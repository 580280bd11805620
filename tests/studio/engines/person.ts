/** A person with a keyboard and a browser of any engine: finds things by their names, presses them, and types. */

import { eventually } from '../../support/eventually.ts';
import type { EngineBrowser } from './browser-engine.ts';

/** Everything takes long while a machine has many other things to do. */
const PATIENCE_MS = 40_000;
/** Each look at the page takes time from the page. */
const LOOK_EVERY_MS = 30;

export type Person = ReturnType<typeof personWith>;

export function personWith(browser: EngineBrowser) {
  /** Calls the function in the page; what it takes and returns must be JSON. */
  async function call<Args extends readonly unknown[], Value>(
    run: (...args: Args) => Value,
    ...args: Args
  ): Promise<Awaited<Value>> {
    const expression = `(async () => JSON.stringify(await ${callOf(run, args)}) ?? 'null')()`;
    return JSON.parse(await browser.evaluate(expression));
  }

  /**
   * Calls the function again and again until it returns something truthy, and returns that.
   *
   * @param run returns no promise, because one that is pending in a page that is left may never be settled
   */
  async function until<Args extends readonly unknown[], Value>(
    what: string,
    run: (...args: Args) => Value,
    ...args: Args
  ): Promise<NonNullable<Value>> {
    const expression = `JSON.stringify(${callOf(run, args)}) ?? 'null'`;
    const look = async (): Promise<Value | undefined> => {
      await Bun.sleep(LOOK_EVERY_MS);
      // A page that is being left cannot be asked.
      return JSON.parse(await browser.evaluate(expression).catch(() => 'null'));
    };
    return eventually(look, what, PATIENCE_MS);
  }

  /** Waits until the page shows a text, in one line or several. */
  async function sees(text: string): Promise<void> {
    const isShown = (text: string) => {
      // What is hidden is not seen, which `textContent` does not tell.
      // biome-ignore lint/performance/useDomNodeTextContent: see above
      return document.body.innerText.replace(/\s+/g, ' ').includes(text);
    };
    await until(`“${text}”`, isShown, text);
  }

  /** Types into the field with this name, in place of what stands in it. */
  async function types(name: string, text: string): Promise<void> {
    await until(`the focus on “${name}”`, focus, name);
    await browser.type(text);
  }

  /** Presses Enter on the button with this name. */
  const presses = (name: string) => types(name, '\n');
  return { ...browser, call, until, sees, types, presses };
}

function callOf(run: (...args: never) => unknown, args: readonly unknown[]): string {
  return `(${run})(...${JSON.stringify(args)})`;
}

/** Whether the focus could be given to the button or field with this name; runs in the page. */
function focus(name: string): boolean {
  const elements = document.querySelectorAll<HTMLButtonElement | HTMLInputElement | HTMLTextAreaElement>(
    'button, input, textarea',
  );
  const nameOf = (element: (typeof elements)[number]) =>
    (element.ariaLabel ?? element.labels?.[0]?.textContent ?? element.textContent).trim();
  const element = [...elements].find((element) => nameOf(element) === name && element.checkVisibility());
  element?.focus();
  if (element && 'select' in element) element.select();
  return element !== undefined && document.activeElement === element;
}
