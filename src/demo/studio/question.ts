/** Asks the person, in the page's dialogue: whether something is meant, or for a text. */

import type { TextKey } from './english.ts';
import type { Values } from './formats.ts';
import { part } from './parts.ts';
import type { Text } from './text.ts';

export interface Question {
  /** @param action what the button that agrees says */
  isMeant(key: TextKey, action: TextKey, values?: Values): Promise<boolean>;
  /** The trimmed text. Undefined if the person gives none. */
  text(key: TextKey, action: TextKey, before: string): Promise<string | undefined>;
  /** Closes the dialogue, as if the person had cancelled it. */
  withdraw(): void;
}

export function createQuestion(dialog: HTMLDialogElement, { text }: { readonly text: Text }): Question {
  const answer = part<HTMLInputElement>(dialog, 'answer');

  async function ask(key: TextKey, action: TextKey, focused: HTMLElement, values?: Values): Promise<boolean> {
    text.write(part(dialog, 'asked'), key, values);
    text.write(part(dialog, 'agree'), action);
    dialog.returnValue = '';
    dialog.showModal();
    focused.focus();
    await new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
    return dialog.returnValue === 'agree';
  }

  return {
    isMeant(key, action, values) {
      answer.hidden = true;
      // Whoever presses Enter without reading loses nothing.
      return ask(key, action, part(dialog, 'cancel'), values);
    },
    async text(key, action, before) {
      answer.hidden = false;
      answer.value = before;
      answer.select();
      const isGiven = await ask(key, action, answer);
      return (isGiven && answer.value.trim()) || undefined;
    },
    withdraw() {
      dialog.close('');
      answer.value = '';
      text.write(part(dialog, 'asked'), undefined);
    },
  };
}
