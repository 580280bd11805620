/** The keys that work everywhere on the page: Space plays and pauses, the arrows move in the track. */

import type { Player } from './player.ts';

const SKIP_SECONDS = 5;
/** Elements that use the key themselves. */
const USES_SPACE = 'a, button, summary, select, textarea, input:not([type="range"])';
const USES_ARROWS = 'select, textarea, input';

/** @param isOpen whether a track is open: without one, the keys scroll the page as usual */
export function connectPlayerKeys(
  document: Document,
  player: Pick<Player, 'toggle' | 'skip'>,
  isOpen: () => boolean,
): void {
  const actions: Readonly<Record<string, { readonly usedBy: string; readonly run: () => void }>> = {
    ' ': { usedBy: USES_SPACE, run: player.toggle },
    ArrowLeft: { usedBy: USES_ARROWS, run: () => player.skip(-SKIP_SECONDS) },
    ArrowRight: { usedBy: USES_ARROWS, run: () => player.skip(SKIP_SECONDS) },
  };
  document.addEventListener('keydown', (event) => {
    const { key, target, defaultPrevented } = event;
    const hasModifier = event.ctrlKey || event.altKey || event.metaKey || event.shiftKey;
    const action = actions[key];
    if (!action || defaultPrevented || hasModifier || !isOpen()) return;
    if (target instanceof Element && target.closest(action.usedBy)) return;
    event.preventDefault();
    action.run();
  });
}
