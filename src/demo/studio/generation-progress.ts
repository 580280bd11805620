/** Shows the progress of each generation in a line, and announces it to screen readers in a few sentences. */

import type { GenerationProgress as Progress } from '../../client/generation.ts';
import type { TextKey } from './english.ts';
import { fromTemplate, part } from './parts.ts';
import type { Text } from './text.ts';
import { addPlayButton, type PlayControls } from './track-buttons.ts';

export interface GenerationProgress {
  /** Adds a line for a track, in place of those that are over. */
  begin(title: string, onCancel: () => void): ProgressLine;
  removeOver(): void;
}

export interface ProgressLine {
  update(progress: Progress): void;
  /** How much of the track has arrived, from 0 to 1. Undefined means that it is not known. */
  showShare(share: number | undefined): void;
  /** Shows that the track waits for others to arrive. */
  queue(): void;
  /** Shows that the order waits for the gateway. */
  hold(): void;
  /** Shows that the upstream has begun to make the track, which is paid for from now on. */
  pay(): void;
  /** Lets a person listen to the track, whose cover this is. */
  offer(cover: string, controls: PlayControls): void;
  /** Shows whether the track is listened to. What arrives here would not be received any more. */
  listen(isListenedTo: boolean, isArriving: boolean): void;
  /** Shows that the track is made without arriving here. */
  await(): void;
  end(outcome: 'complete' | 'cancelled' | 'withdrawn' | 'unsent' | 'broken'): void;
  remove(): void;
}

/** How long a complete track is shown here. */
const FOLD_MS = 8_000;

/** @param figures where the figures of the latest track are shown */
export function createGenerationProgress(
  root: HTMLElement,
  { text, figures }: { readonly text: Text; readonly figures: ParentNode },
): GenerationProgress {
  const status = part(root, 'status');
  const list = part(root, 'lines');

  function showState(): void {
    root.dataset['state'] = list.children.length > 0 ? 'filled' : 'idle';
    part(root, 'paid').hidden = !list.querySelector('[data-state="paid"]');
  }

  function announce(title: string, key: TextKey | undefined): void {
    part(root, 'which').textContent = key && list.children.length > 1 ? `${title}: ` : '';
    text.write(status, key);
  }

  function removeOver(): void {
    for (const element of [...list.children]) if (element.matches('[data-state="over"]')) element.remove();
    announce('', undefined);
    showState();
  }

  function begin(title: string, onCancel: () => void): ProgressLine {
    const element = fromTemplate(root.ownerDocument, 'generation-line');
    const said = part(element, 'said');
    const cancel = part(element, 'cancel');

    /** Writes only when the text changes, because screen readers announce each write to the live region. */
    function say(key: TextKey): void {
      if (said.dataset['text'] === key) return;
      text.write(said, key);
      announce(title, key);
    }

    function showShare(share: number | undefined): void {
      const bar = part(element, 'bar');
      bar.toggleAttribute('data-known', share !== undefined);
      bar.style.setProperty('--share', String(share));
      text.write(part(element, 'share'), share === undefined ? undefined : 'arrivedShare', {
        share: share ?? 0,
      });
    }

    /** Later while a person is in it. The live region keeps what it says, which somebody may still be reading. */
    function foldAway(): void {
      const isInUse = element.matches(':hover') || element.contains(root.ownerDocument.activeElement);
      if (isInUse) return void setTimeout(foldAway, FOLD_MS);
      element.remove();
      showState();
    }

    text.fill(element);
    element.dataset['state'] = 'running';
    part(element, 'title').textContent = title;
    const play = addPlayButton(element, text);
    play.element.hidden = true;
    for (const name of ['elapsed', 'received', 'first-byte']) text.write(part(figures, name), 'none');
    cancel.addEventListener('click', onCancel);
    removeOver();
    list.append(element);
    showState();
    say('asking');

    return {
      update({ state, bytes, elapsedMs, firstByteMs }) {
        if (state === 'recovering') say(bytes > 0 ? 'recovering' : 'orderingAgain');
        if (firstByteMs === undefined) return;
        if (state === 'arriving') say('arriving');
        text.write(part(figures, 'elapsed'), 'duration', { ms: elapsedMs });
        text.write(part(figures, 'received'), 'size', { bytes });
        text.write(part(figures, 'first-byte'), 'delay', { ms: firstByteMs });
      },
      showShare,
      queue: () => say('queued'),
      hold: () => say('held'),
      pay() {
        element.dataset['state'] = 'paid';
        showState();
      },
      offer(cover, controls) {
        play.showCover(cover);
        play.connect(controls);
        play.element.hidden = false;
      },
      listen(isListenedTo, isArriving) {
        play.show(isListenedTo);
        if (isArriving) text.write(cancel, isListenedTo ? 'stopListening' : 'stopReceiving');
      },
      await: () => say('beingMade'),
      end(outcome) {
        const buttons = [cancel, play.element];
        if (buttons.some((button) => button === root.ownerDocument.activeElement)) element.focus();
        element.dataset['state'] = 'over';
        for (const button of buttons) button.hidden = true;
        showState();
        showShare(undefined);
        say(outcome);
        if (outcome === 'complete') setTimeout(foldAway, FOLD_MS);
      },
      remove() {
        element.remove();
        showState();
        announce(title, undefined);
      },
    };
  }

  return { begin, removeOver };
}
