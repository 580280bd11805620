/** Shows the progress of a generation as figures, and announces it to screen readers in a few sentences. */

import type { RecoveryProgress } from '../../client/recovering-generation.ts';
import type { TextKey } from './english.ts';
import { part } from './parts.ts';
import type { Text } from './text.ts';

export interface GenerationProgress {
  begin(): void;
  update(progress: RecoveryProgress): void;
  end(outcome: 'complete' | 'cancelled' | 'broken'): void;
  /** Hides the progress of an order that was refused. */
  hide(): void;
}

const TICK_MS = 100;

export function createGenerationProgress(root: HTMLElement, { text }: { text: Text }): GenerationProgress {
  let clock: ReturnType<typeof setInterval> | undefined;
  let begunAt = 0;

  /** Writes to the live region only when the text changes, because screen readers announce each write. */
  function say(key: TextKey | undefined): void {
    const status = part(root, 'status');
    if (status.dataset['text'] !== key) text.write(status, key);
  }

  function showElapsed(): void {
    text.write(part(root, 'elapsed'), 'duration', { ms: performance.now() - begunAt });
  }

  return {
    begin() {
      begunAt = performance.now();
      root.dataset['state'] = 'running';
      say('asking');
      text.write(part(root, 'received'), 'none');
      text.write(part(root, 'first-byte'), 'none');
      showElapsed();
      clearInterval(clock);
      clock = setInterval(showElapsed, TICK_MS);
    },
    update({ state, bytes, firstByteMs }) {
      if (state === 'recovering') say('recovering');
      if (firstByteMs === undefined) return;
      if (state === 'arriving') say('arriving');
      text.write(part(root, 'received'), 'size', { bytes });
      text.write(part(root, 'first-byte'), 'delay', { ms: firstByteMs });
    },
    end(outcome) {
      clearInterval(clock);
      root.dataset['state'] = 'over';
      showElapsed();
      say(outcome);
    },
    hide() {
      clearInterval(clock);
      root.dataset['state'] = 'idle';
      say(undefined);
    },
  };
}
