/** Shows a track that somebody shared. At `/?listen=<id>`, it can be played without a session. */

import { part } from './parts.ts';
import { type Creation, readCreation } from './records.ts';
import type { Text } from './text.ts';

export interface SharedTrackOptions {
  readonly text: Text;
  /** Fetches the description of the track. Rejects if the track is not public. */
  readonly describe: () => Promise<unknown>;
  readonly onFound: (creation: Creation) => void;
}

/** The id of the track that an address shares, if there is one. */
export function sharedId(address: string): string | undefined {
  return new URL(address).searchParams.get('listen') || undefined;
}

export function shareAddress(origin: string, id: string): string {
  const url = new URL('/', origin);
  url.searchParams.set('listen', id);
  return url.href;
}

export async function showSharedTrack(
  root: HTMLElement,
  { text, describe, onFound }: SharedTrackOptions,
): Promise<void> {
  const [heading, detail] = [part(root, 'heading'), part(root, 'detail')];
  root.hidden = false;
  text.write(heading, 'sharedLoading');
  try {
    const creation = readCreation(await describe());
    text.write(heading, 'sharedTrack');
    text.write(detail, creation.createdAt && 'sharedOn', { at: creation.createdAt ?? 0 });
    onFound(creation);
  } catch {
    text.write(heading, 'sharedGone');
    text.write(detail, 'sharedGoneText');
  }
}
