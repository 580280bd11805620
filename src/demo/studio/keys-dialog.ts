/** The dialogue that shows the page's keys. Single keys can be switched off there, which the browser remembers. */

import type { Memory } from './browser-memory.ts';
import { part } from './parts.ts';

export interface KeysDialog {
  show(): void;
  /** Whether single keys work. Who speaks to the browser presses them by accident. @see WCAG 2.2, 2.1.4 */
  readonly singleKeysWork: boolean;
}

const STORAGE_KEY = 'studio.single-keys';

export function createKeysDialog(document: Document, { memory }: { readonly memory: Memory }): KeysDialog {
  const dialog = part<HTMLDialogElement>(document, 'keys');
  const singleKeys = part<HTMLInputElement>(dialog, 'single-keys');
  const show = () => dialog.showModal();
  singleKeys.checked = memory.getItem(STORAGE_KEY) !== 'off';
  singleKeys.addEventListener('change', () => memory.setItem(STORAGE_KEY, singleKeys.checked ? 'on' : 'off'));
  part(document, 'show-keys').addEventListener('click', show);
  return {
    show,
    get singleKeysWork() {
      return singleKeys.checked;
    },
  };
}
