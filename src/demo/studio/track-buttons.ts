/** What the buttons of a track in a list have in common: their names, and the one with the cover, which plays it. */

import { fromTemplate, part } from './parts.ts';
import type { Text } from './text.ts';

export interface PlayControls {
  readonly onPlay: () => void;
  /** Called for the track that plays. */
  readonly onPause: () => void;
}

export interface PlayButton {
  readonly element: HTMLElement;
  showCover(path: string): void;
  /** Shows what the next press does. */
  show(isPlaying: boolean): void;
  connect(controls: PlayControls): void;
}

/** All items of a list have the same buttons, so the title in their names says which one they are for. */
export function nameByTitle(title: HTMLElement, buttons: readonly HTMLElement[]): void {
  title.id ||= `title-${crypto.randomUUID()}`;
  for (const button of buttons) {
    const label = part(button, 'label');
    label.id = `${title.id}-${button.dataset['part']}`;
    button.setAttribute('aria-labelledby', `${label.id} ${title.id}`);
  }
}

/** Adds the button in front of what the item has. */
export function addPlayButton(item: HTMLElement, text: Text): PlayButton {
  const element = fromTemplate(item.ownerDocument, 'play-button');
  text.fill(element);
  item.prepend(element);
  nameByTitle(part(item, 'title'), [element]);
  return {
    element,
    showCover(path) {
      part<HTMLImageElement>(element, 'cover').src = path;
    },
    show(isPlaying) {
      element.dataset['state'] = isPlaying ? 'playing' : 'paused';
      text.write(part(element, 'label'), isPlaying ? 'pause' : 'play');
    },
    connect({ onPlay, onPause }) {
      element.addEventListener('click', () =>
        element.dataset['state'] === 'playing' ? onPause() : onPlay(),
      );
    },
  };
}
