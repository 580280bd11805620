/** What tests need of a browser, whichever engine it has. */

import type { Requirement } from './requirements.ts';

/** One source of input and what it does, as both WebDriver protocols describe it. @see https://www.w3.org/TR/webdriver2/#actions */
export type InputSource =
  | { readonly type: 'pointer'; readonly id: string; readonly actions: readonly PointerAction[] }
  | { readonly type: 'key'; readonly id: string; readonly actions: readonly KeyAction[] };
type PointerAction =
  | { readonly type: 'pointerMove'; readonly x: number; readonly y: number }
  | { readonly type: 'pointerDown' | 'pointerUp'; readonly button: number };
type KeyAction = { readonly type: 'keyDown' | 'keyUp'; readonly value: string };

/** A browser of one person, with one tab and a profile of its own. Its disposal ends it. */
export interface EngineBrowser extends AsyncDisposable {
  open(address: string): Promise<void>;
  /** Evaluates an expression in the page, waits if it is a promise, and returns the text that it results in. */
  evaluate(expression: string): Promise<string>;
  perform(input: InputSource): Promise<void>;
}

export interface Engine {
  readonly name: string;
  readonly requirements: readonly Requirement[];
  /** How often a test that plays sound is tried again, because the engine's own player may hang. */
  readonly playbackRetries: number;
  /** Whether its player goes on after a seek in a file without Content-Length. */
  readonly canSeek: boolean;
  launch(options: { readonly isPrivate: boolean }): Promise<EngineBrowser>;
}
