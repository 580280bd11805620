/** Shows a few public tracks that can be heard before a sign-in. */

import type { GatewayClient } from '../../client/gateway-client.ts';
import { coverPath } from './cover.ts';
import { createFeed } from './feed.ts';
import { fromTemplate, part } from './parts.ts';
import { type Creation, readCreation } from './records.ts';
import type { Text } from './text.ts';
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
  const items = new Map<string, HTMLElement>();
  let creations: readonly Creation[] = [];

  function createItem(creation: Creation): HTMLElement {
    const { id, title, seconds } = creation;
    const item = fromTemplate(root.ownerDocument, 'piece-item');
    const play = part(item, 'play');
    text.fill(item);
    part<HTMLImageElement>(play, 'cover').src = coverPath(creation);
    part(item, 'title').textContent = title;
    text.write(part(item, 'duration'), 'trackLength', { seconds });
    // All items have the same button, so the title in its name says which track it is for.
    part(item, 'title').id = `title-${id}`;
    part(play, 'label').id = `play-${id}`;
    play.setAttribute('aria-labelledby', `play-${id} title-${id}`);
    play.addEventListener('click', () => {
      if (play.dataset['state'] === 'playing') onPause();
      else onPlay(creation);
    });
    items.set(id, item);
    return item;
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
      for (const [id, item] of items) {
        item.setAttribute('aria-current', String(id === open));
        const play = part(item, 'play');
        play.dataset['state'] = id === open && isPlaying ? 'playing' : 'paused';
        text.write(part(play, 'label'), id === open && isPlaying ? 'pause' : 'play');
      }
    },
    following(id) {
      const index = creations.findIndex((creation) => creation.id === id);
      return index < 0 ? undefined : creations[index + 1];
    },
  };
}
