/** Shows a few public tracks that can be heard before a sign-in. */

import type { GatewayClient } from '../../client/gateway-client.ts';
import { coverPath } from './cover.ts';
import { createFeed } from './feed.ts';
import { fromTemplate, part } from './parts.ts';
import { type Creation, readCreation } from './records.ts';
import type { Text } from './text.ts';
import { addPlayButton, type PlayButton } from './track-buttons.ts';
import { publicPath } from './tracks.ts';

export interface Pieces {
  /** Loads them, if they are not here yet, and goes on until that succeeds. */
  show(): void;
  /** Stops loading. */
  leave(): void;
  markPlaying(id: string | undefined, isPlaying: boolean): void;
  /** The one after this one. None after the last, and after another track. */
  following(id: string): Creation | undefined;
}

export interface PiecesOptions {
  readonly text: Text;
  readonly client: Pick<GatewayClient, 'upstreamData'>;
  readonly ids: readonly string[];
  readonly onPlay: (creation: Creation) => void;
  /** Called when they are here. */
  readonly onLoad: (creations: readonly Creation[]) => void;
  /** Called for the track that plays. */
  readonly onPause: () => void;
}

export function createPieces(
  root: HTMLElement,
  { text, client, ids, onLoad, onPlay, onPause }: PiecesOptions,
): Pieces {
  const items = new Map<string, { readonly element: HTMLElement; readonly play: PlayButton }>();
  let creations: readonly Creation[] = [];

  function createItem(creation: Creation): HTMLElement {
    const { id, title, seconds } = creation;
    const element = fromTemplate(root.ownerDocument, 'piece-item');
    part(element, 'title').textContent = title;
    text.write(part(element, 'duration'), 'trackLength', { seconds });
    const play = addPlayButton(element, text);
    play.showCover(coverPath(creation));
    play.connect({ onPlay: () => onPlay(creation), onPause });
    items.set(id, { element, play });
    return element;
  }

  const feed = createFeed<readonly Creation[]>({
    load: async () =>
      Promise.all(ids.map(async (id) => readCreation(await client.upstreamData(publicPath(id))))),
    show(loaded) {
      creations = loaded;
      part(root, 'list').replaceChildren(...loaded.map(createItem));
      root.hidden = false;
      onLoad(loaded);
    },
    // The page is whole without them.
    onFailure() {},
    onRecovery() {},
  });

  return {
    show() {
      if (ids.length > 0 && creations.length === 0) feed.refresh();
    },
    leave: feed.stop,
    markPlaying(open, isPlaying) {
      for (const [id, { element, play }] of items) {
        element.setAttribute('aria-current', String(id === open));
        play.show(id === open && isPlaying);
      }
    },
    following(id) {
      const index = creations.findIndex((creation) => creation.id === id);
      return index < 0 ? undefined : creations[index + 1];
    },
  };
}
