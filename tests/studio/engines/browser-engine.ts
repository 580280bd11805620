/** What tests need of a browser, whichever engine it has, and the programs that it consists of. */

import { eventually } from '../../support/eventually.ts';
import type { Requirement } from '../../support/requirements.ts';

/** A browser of one person, with one tab and a profile of its own. Its disposal ends it. */
export interface EngineBrowser extends AsyncDisposable {
  open(address: string): Promise<unknown>;
  /** Evaluates an expression in the page, waits if it is a promise, and returns the text that it results in. */
  evaluate(expression: string): Promise<string>;
  /** Types a text into what has the focus; a line feed in it is a press of Enter. */
  type(text: string): Promise<unknown>;
}

export interface Engine {
  readonly name: string;
  readonly requirements: readonly Requirement[];
  /** How often a test that plays sound is tried again, because the engine's own player may hang. */
  readonly playbackRetries: number;
  /** Whether its player goes on after a seek in a file without Content-Length. */
  readonly canSeek: boolean;
  launch(): Promise<EngineBrowser>;
}

/** The actions that type a text, in both WebDriver protocols. @see https://www.w3.org/TR/webdriver2/#actions */
export function typing(text: string): object {
  const press = (value: string) => ['keyDown', 'keyUp'].map((type) => ({ type, value }));
  const actions = [...text.replace('\n', '\uE007')].flatMap(press);
  return { actions: [{ type: 'key', id: 'keyboard', actions }] };
}

/** Starts a program that is killed on disposal. What it has started itself ends with it, or with its display. */
export function startProgram(
  command: readonly [string, ...string[]],
  { path: HOME }: { readonly path: string },
  environment: Readonly<Record<string, string>> = {},
) {
  const output = Bun.file(`${HOME}/${command[0]}.log`);
  const child = Bun.spawn([...command], {
    env: { ...process.env, HOME, ...environment },
    stdio: ['ignore', output, output],
  });
  return {
    /** Waits until the program has printed this, and returns what the first group matches. */
    async printed(pattern: RegExp): Promise<string> {
      const find = async () => {
        const text = await output.text();
        if (child.exitCode !== null) throw new Error(`${command[0]} has ended: ${text}`);
        return pattern.exec(text)?.[1];
      };
      return eventually(find, `${command[0]} to print ${pattern}`);
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await child.exited;
    },
  };
}
