/** Makes the player's tracks: a person's own track needs the session cookies, a public one does not. */

import type { GatewayClient } from '../../client/gateway-client.ts';
import type { Track } from './playback.ts';
import type { Creation } from './records.ts';

type Described = Pick<Creation, 'id' | 'title' | 'seconds'>;

export function ownTrack(client: Pick<GatewayClient, 'contentUrl'>, creation: Described): Track {
  return { ...described(creation), url: client.contentUrl(creation.id), crossOrigin: 'use-credentials' };
}

export function publicTrack(client: Pick<GatewayClient, 'publicContentUrl'>, creation: Described): Track {
  return { ...described(creation), url: client.publicContentUrl(creation.id), crossOrigin: 'anonymous' };
}

function described({ id, title, seconds }: Described) {
  return { id, title, seconds };
}

/** The path of what is known of a public track at the upstream. */
export function publicPath(id: string): `/v1/${string}` {
  return `/v1/music/public/${encodeURIComponent(id)}`;
}

/** The path of the audio of a person's own track at the upstream. */
export function contentPath(id: string): `/v1/${string}` {
  return `/v1/music/creations/${encodeURIComponent(id)}/content`;
}
