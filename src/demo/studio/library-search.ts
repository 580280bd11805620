/** The field that filters a long library as the person types. */

import { part } from './parts.ts';
import type { Creation } from './records.ts';
import type { Text } from './text.ts';

export interface LibrarySearch {
  /** The tracks that have every word of the field in their titles or prompts: all of them while it is empty. */
  filter(creations: readonly Creation[]): readonly Creation[];
}

/** A shorter library can be seen as a whole. */
const LONG_LIBRARY = 8;

/** @param onInput called when the person has changed what is searched for */
export function createLibrarySearch(
  root: HTMLElement,
  { text, onInput }: { readonly text: Text; readonly onInput: () => void },
): LibrarySearch {
  const field = part<HTMLInputElement>(root, 'search');
  const found = part(root, 'found');

  field.addEventListener('input', onInput);
  field.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || field.value === '') return;
    event.preventDefault();
    field.value = '';
    onInput();
  });

  return {
    filter(creations) {
      const isLong = creations.length >= LONG_LIBRARY;
      field.hidden = !isLong;
      // Another account's library may be the next one here.
      if (!isLong) field.value = '';
      const words = comparable(field.value).split(/\s+/).filter(Boolean);
      if (words.length === 0) {
        text.write(found, undefined);
        return creations;
      }
      const matching = creations.filter(({ title, prompt }) => {
        const compared = comparable(`${title} ${prompt}`);
        return words.every((word) => compared.includes(word));
      });
      text.write(found, matching.length > 0 ? 'found' : 'notFound', {
        shown: matching.length,
        all: creations.length,
      });
      return matching;
    },
  };
}

/** Without what people leave out when they search: capitals and accents. */
function comparable(text: string): string {
  return text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
}
