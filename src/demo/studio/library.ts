/** Shows the list of a person's tracks. */

import { createLibraryItem, type LibraryItem, type LibraryItemOptions } from './library-item.ts';
import { part } from './parts.ts';
import type { Creation } from './records.ts';

export interface Library {
  /** Newest first. Undefined means that they are not known yet. */
  show(creations: readonly Creation[] | undefined): void;
  /** Marks the track that is open in the player. */
  markPlaying(id: string | undefined): void;
}

export function createLibrary(root: HTMLElement, options: LibraryItemOptions): Library {
  const list = part(root, 'list');
  const items = new Map<string, LibraryItem>();
  let playing: string | undefined;

  function mark(): void {
    for (const [id, { element }] of items) element.setAttribute('aria-current', String(id === playing));
  }

  function removeExcept(kept: ReadonlySet<string>): void {
    for (const [id, { element }] of items) {
      if (kept.has(id)) continue;
      element.remove();
      items.delete(id);
    }
  }

  function place(creation: Creation, index: number): void {
    const item = items.get(creation.id) ?? createLibraryItem(root.ownerDocument, creation, options);
    items.set(creation.id, item);
    item.update(creation);
    const inPlace = list.children[index] ?? null;
    // Moving an element would take the keyboard focus from it.
    if (item.element !== inPlace) list.insertBefore(item.element, inPlace);
  }

  return {
    show(creations) {
      root.dataset['state'] = creations === undefined ? 'loading' : creations.length > 0 ? 'filled' : 'empty';
      removeExcept(new Set(creations?.map(({ id }) => id)));
      creations?.forEach(place);
      mark();
    },
    markPlaying(id) {
      playing = id;
      mark();
    },
  };
}
