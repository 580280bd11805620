/** Shows the list of a person's tracks. */

import { createLibraryItem, type LibraryItem, type LibraryItemOptions } from './library-item.ts';
import { createLibrarySearch } from './library-search.ts';
import { part } from './parts.ts';
import type { Step } from './player.ts';
import type { Creation } from './records.ts';

export interface Library {
  /** Newest first. Undefined means that they are not known yet. */
  show(creations: readonly Creation[] | undefined): void;
  /** Shows what it has again, because other tracks may be elsewhere now. */
  update(): void;
  /** Gives the focus to a track, or to the library if it does not show it. */
  focusOn(id: string): void;
  /** Shows that they could not be loaded, unless there are some to show. */
  showFailure(): void;
  /** Marks the track that is open in the player, and whether it plays. */
  markPlaying(id: string | undefined, isPlaying: boolean): void;
  /** The track before (-1) or after (1) this one, among those that are shown and can be played; at an end, the other one. */
  neighbour(id: string, by: Step): Creation | undefined;
  /** The track after this one, as they are shown. None after the last, and after one that is not shown. */
  following(id: string): Creation | undefined;
}

export interface LibraryOptions extends LibraryItemOptions {
  /** Whether the page shows the track in another place as long as it is being made. */
  readonly isElsewhere: (id: string) => boolean;
}

export function createLibrary(root: HTMLElement, options: LibraryOptions): Library {
  const list = part(root, 'list');
  const items = new Map<string, LibraryItem>();
  let known: readonly Creation[] | undefined;
  let all: readonly Creation[] = [];
  /** Those that are shown and can be played. */
  let playable: readonly Creation[] = [];
  const search = createLibrarySearch(root, { text: options.text, onInput: filter });
  let open: { readonly id: string | undefined; readonly isPlaying: boolean } = {
    id: undefined,
    isPlaying: false,
  };

  const indexOf = (id: string) => playable.findIndex((creation) => creation.id === id);

  function mark(): void {
    for (const [id, item] of items) item.mark(id === open.id, id === open.id && open.isPlaying);
  }

  function filter(): void {
    const shown = search.filter(all);
    playable = shown.filter(({ isGenerating }) => !isGenerating);
    const ids = new Set(shown.map(({ id }) => id));
    for (const [id, { element }] of items) element.hidden = !ids.has(id);
  }

  /** Where the focus goes when the track that has it is removed: to the next one that stays, else to the one before. */
  function placeOfFocus(kept: ReadonlySet<string>): HTMLElement | undefined {
    const elementOf = ({ id }: Creation) => items.get(id)?.element;
    const at = all.findIndex((each) => elementOf(each)?.contains(root.ownerDocument.activeElement));
    const focused = all[at];
    if (!focused || kept.has(focused.id)) return undefined;
    const others = [...all.slice(at + 1), ...all.slice(0, at).reverse()];
    const next = others.find((each) => kept.has(each.id) && !elementOf(each)?.hidden);
    const element = next && elementOf(next);
    return element ? part(element, 'play') : part(root, 'heading');
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

  function show(creations: readonly Creation[] | undefined): void {
    known = creations;
    const here = creations?.filter(({ id }) => !options.isElsewhere(id));
    root.dataset['state'] = here === undefined ? 'loading' : here.length > 0 ? 'filled' : 'empty';
    const kept = new Set(here?.map(({ id }) => id));
    const focus = placeOfFocus(kept);
    all = here ?? [];
    removeExcept(kept);
    all.forEach(place);
    filter();
    mark();
    focus?.focus();
  }

  return {
    show,
    update: () => show(known),
    focusOn(id) {
      const element = items.get(id)?.element;
      (element ? part(element, 'play') : part(root, 'heading')).focus();
    },
    showFailure() {
      if (root.dataset['state'] === 'loading') root.dataset['state'] = 'failed';
    },
    markPlaying(id, isPlaying) {
      open = { id, isPlaying };
      mark();
    },
    neighbour(id, by) {
      const index = indexOf(id);
      return index < 0 ? playable[0] : playable.at((index + by) % playable.length);
    },
    following(id) {
      const index = indexOf(id);
      return index < 0 ? undefined : playable[index + 1];
    },
  };
}
