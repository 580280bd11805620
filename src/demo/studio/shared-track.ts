/** Shows a track that somebody shared. At `/?listen=<id>`, it can be played without a session. */

import type { GatewayClient } from '../../client/gateway-client.ts';
import { GatewayRequestError } from '../../client/gateway-request.ts';
import { coverPath } from './cover.ts';
import { createFeed } from './feed.ts';
import { part } from './parts.ts';
import { type Creation, readCreation } from './records.ts';
import type { Text } from './text.ts';
import { addPlayButton, type PlayControls } from './track-buttons.ts';
import { publicPath } from './tracks.ts';

export interface SharedTrack {
  /** Shows whether it is the one that plays. */
  markPlaying(id: string | undefined, isPlaying: boolean): void;
}

export interface SharedTrackOptions extends PlayControls {
  readonly text: Text;
  readonly client: Pick<GatewayClient, 'upstreamData'>;
  /** The page's address. */
  readonly address: string;
  /** Whether the player has no other track, which must not be interrupted. */
  readonly isPlayerFree: () => boolean;
  /** Called when the track can be played, if the player is free then, and before each `onPlay`. */
  readonly onOpen: (creation: Creation) => void;
}

/** These refusals pass. Any other says that there is no such track, or that it is not public any more. */
const PASSING = [408, 425, 429];

/** The id of the track that an address shares, if there is one. */
export function sharedId(address: string): string | undefined {
  return new URL(address).searchParams.get('listen') || undefined;
}

export function shareAddress(origin: string, id: string): string {
  const url = new URL('/', origin);
  url.searchParams.set('listen', id);
  return url.href;
}

/** Does nothing if the address shares no track. */
export function showSharedTrack(root: HTMLElement, options: SharedTrackOptions): SharedTrack {
  const { text, client, address, isPlayerFree, onOpen, onPlay, onPause } = options;
  const id = sharedId(address);
  if (id === undefined) return { markPlaying() {} };
  const [heading, detail] = [part(root, 'title'), part(root, 'detail')];
  const play = addPlayButton(root, text);
  play.element.hidden = true;
  root.hidden = false;
  text.write(heading, 'sharedLoading');
  const feed = createFeed<Creation>({
    load: async () => readCreation(await client.upstreamData(publicPath(id))),
    isUnsettled: ({ isGenerating }) => isGenerating,
    show(creation) {
      const { isGenerating, createdAt, title, author } = creation;
      if (isGenerating) {
        text.write(heading, 'sharedBeingMade');
        text.write(detail, 'sharedBeingMadeText');
        return;
      }
      text.write(heading, title === '' ? 'sharedTrack' : undefined);
      if (title !== '') heading.textContent = title;
      text.write(detail, createdAt && (author === '' ? 'sharedOn' : 'sharedBy'), {
        at: createdAt ?? 0,
        author,
      });
      play.showCover(coverPath(creation));
      play.connect({
        onPlay() {
          onOpen(creation);
          onPlay();
        },
        onPause,
      });
      play.element.hidden = false;
      if (isPlayerFree()) onOpen(creation);
    },
    onFailure(error) {
      const isGone = error instanceof GatewayRequestError && isRefusal(error.status);
      if (isGone) feed.stop();
      text.write(heading, isGone ? 'sharedGone' : 'sharedLoading');
      text.write(detail, isGone ? 'sharedGoneText' : 'notReached');
    },
    onRecovery() {},
  });
  feed.refresh();
  return { markPlaying: (open, isPlaying) => play.show(open === id && isPlaying) };
}

function isRefusal(status: number): boolean {
  return status >= 400 && status < 500 && !PASSING.includes(status);
}
