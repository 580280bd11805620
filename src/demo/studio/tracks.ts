/** Makes the player's tracks: a person's own track needs the session cookies, a public one does not. */

import type { GatewayClient } from '../../client/gateway-client.ts';
import { coverPath } from './cover.ts';
import type { Track } from './playback.ts';
import type { Creation } from './records.ts';

/** What is known of a track from its order on. */
export type Described = Pick<Creation, 'id' | 'title' | 'prompt' | 'seconds'> &
  Partial<Pick<Creation, 'author'>>;

export function ownTrack(client: Pick<GatewayClient, 'contentUrl'>, creation: Described): Track {
  return { ...described(creation), url: client.contentUrl(creation.id), crossOrigin: 'use-credentials' };
}

export function publicTrack(client: Pick<GatewayClient, 'publicContentUrl'>, creation: Described): Track {
  return { ...described(creation), url: client.publicContentUrl(creation.id), crossOrigin: 'anonymous' };
}

function described({ id, title, author = '', seconds, prompt }: Described) {
  return { id, title, author, seconds, cover: coverPath({ id, prompt }) };
}

/** The path of what is known of a public track at the upstream. */
export function publicPath(id: string): `/v1/${string}` {
  return `/v1/music/public/${encodeURIComponent(id)}`;
}

/** The path of the audio of a person's own track at the upstream. */
export function contentPath(id: string): `/v1/${string}` {
  return `/v1/music/creations/${encodeURIComponent(id)}/content`;
}
