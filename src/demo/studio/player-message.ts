/** Says in the player why the track does not play, or may soon have to wait. */

import type { TextKey } from './english.ts';
import type { Text } from './text.ts';

export interface PlayerMessage {
  /** Undefined means that there is none. */
  showProblem(problem: TextKey | undefined): void;
  /** This is no problem any more; another one stays. */
  endProblem(over: TextKey): void;
  /** Shows whether the connection that brings the rest of the track has to come back first. */
  showRecovery(isRecovering: boolean): void;
}

export function createPlayerMessage(element: Element, { text }: { text: Text }): PlayerMessage {
  let problem: TextKey | undefined;
  let isRecovering = false;

  function show(): void {
    const isExplained = isRecovering && (problem === undefined || problem === 'stalled');
    const key = isExplained ? 'reconnecting' : problem;
    // Screen readers announce each write.
    if (element.getAttribute('data-text') !== (key ?? null)) text.write(element, key);
  }

  return {
    showProblem(next) {
      problem = next;
      show();
    },
    endProblem(over) {
      if (problem === over) problem = undefined;
      show();
    },
    showRecovery(next) {
      isRecovering = next;
      show();
    },
  };
}
