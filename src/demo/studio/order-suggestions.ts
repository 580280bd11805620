/** Buttons that fill in a field of the order: lengths that people want often, and examples of prompts. */

import { enter } from './order-fields.ts';

/** Each button below `root` with `data-seconds` enters that length, and each with `data-example` its own text. */
export function connectSuggestions(
  root: HTMLElement,
  { prompt, length }: { readonly prompt: HTMLTextAreaElement; readonly length: HTMLInputElement },
): void {
  for (const button of root.querySelectorAll<HTMLElement>('[data-seconds]')) {
    button.addEventListener('click', () => enter(length, button.dataset['seconds'] ?? ''));
  }
  for (const button of root.querySelectorAll<HTMLElement>('[data-example]')) {
    button.addEventListener('click', () => {
      enter(prompt, button.textContent.trim());
      prompt.focus();
    });
  }
}
