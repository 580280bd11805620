/** Deletes a track a few seconds after a person has asked for it, and lets the person undo that until then. */

import type { Memory } from './browser-memory.ts';
import { part } from './parts.ts';
import type { Creation } from './records.ts';
import type { Text } from './text.ts';

export interface Deletions {
  begin(creation: Pick<Creation, 'id' | 'title'>): Promise<void>;
  /** Whether the track counts as deleted. */
  has(id: string): boolean;
  /** Deletes now what is waiting for it, also from before a reload. */
  settle(): Promise<void>;
  /** Leaves it to the next `settle`, because the session has ended. */
  suspend(): void;
  /** Deletes nothing, because its owner has gone. */
  abandon(): void;
}

export interface DeletionsOptions {
  readonly text: Text;
  readonly tab: Memory;
  /** Resolves to whether the session has lasted. May be called again for a track that is deleted. Must not reject. */
  readonly remove: (id: string) => Promise<boolean>;
  /** Called when another track counts as deleted, or one does not any more. */
  readonly onChange: () => void;
  /** Where the focus goes with the button. */
  readonly focusOn: (id: string) => void;
}

const UNDO_MS = 10_000;
const KEY = 'studio.deleting';

export function createDeletions(
  root: HTMLElement,
  { text, tab, remove, onChange, focusOn }: DeletionsOptions,
): Deletions {
  const undo = part(root, 'undo');
  const waiting = () => tab.getItem(KEY) ?? undefined;
  /** What the upstream is deleting: it stays hidden until the library is loaded again. */
  const gone = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;

  function suspend(): void {
    clearTimeout(timer);
    root.hidden = true;
    text.write(part(root, 'said'), undefined);
  }

  function abandon(): void {
    tab.removeItem(KEY);
    suspend();
  }

  async function settle(): Promise<void> {
    const id = waiting();
    if (id === undefined || gone.has(id)) return;
    gone.add(id);
    const hadFocus = root.contains(root.ownerDocument.activeElement);
    suspend();
    if (hadFocus) focusOn(id);
    const hasLasted = await remove(id);
    gone.delete(id);
    // Kept until now, because the page may be left before the response.
    if (hasLasted && waiting() === id) tab.removeItem(KEY);
  }

  undo.addEventListener('click', () => {
    const id = waiting();
    abandon();
    onChange();
    if (id !== undefined) focusOn(id);
  });

  root.ownerDocument.defaultView?.addEventListener('pagehide', () => {
    // After the end of the session, the track waits for the next sign-in.
    if (!root.hidden) void settle();
  });

  return {
    async begin({ id, title }) {
      const before = settle();
      tab.setItem(KEY, id);
      root.hidden = false;
      text.write(part(root, 'said'), 'deleted', { track: title });
      onChange();
      undo.focus();
      timer = setTimeout(() => void settle(), UNDO_MS);
      await before;
    },
    has: (id) => id === waiting() || gone.has(id),
    settle,
    suspend,
    abandon,
  };
}
