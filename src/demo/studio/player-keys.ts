/** The keys that work everywhere on the page: for the player, and one that shows them all. */

import type { KeysDialog } from './keys-dialog.ts';
import type { Player } from './player.ts';

const SKIP_SECONDS = 5;
/** Elements that use the key themselves. */
const USES_SPACE = 'a, button, summary, select, textarea, input:not([type="range"])';
const USES_ARROWS = 'select, textarea, input';
const USES_LETTERS = 'select, textarea, input:not([type="range"], [type="checkbox"], [type="radio"])';

/** @param isOpen whether a track is open: without one, the keys scroll the page as usual */
export function connectPlayerKeys(
  document: Document,
  player: Pick<Player, 'toggle' | 'skip'> & { readonly mute: () => void },
  dialog: KeysDialog,
  isOpen: () => boolean,
): void {
  const actions: Readonly<Record<string, { readonly usedBy: string; readonly run: () => void }>> = {
    ' ': { usedBy: USES_SPACE, run: player.toggle },
    m: { usedBy: USES_LETTERS, run: player.mute },
    '?': { usedBy: USES_LETTERS, run: dialog.show },
    ArrowLeft: { usedBy: USES_ARROWS, run: () => player.skip(-SKIP_SECONDS) },
    ArrowRight: { usedBy: USES_ARROWS, run: () => player.skip(SKIP_SECONDS) },
  };
  document.addEventListener('keydown', (event) => {
    const { key, target, defaultPrevented } = event;
    const hasModifier = event.ctrlKey || event.altKey || event.metaKey || (event.shiftKey && key !== '?');
    const action = actions[key];
    if (!action || !dialog.singleKeysWork || defaultPrevented || hasModifier) return;
    if (!(isOpen() || key === '?')) return;
    if (target instanceof Element && target.closest(`${action.usedBy}, dialog`)) return;
    event.preventDefault();
    action.run();
  });
}
