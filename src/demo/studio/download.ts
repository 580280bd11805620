/** Saves a track as a file. A link cannot do that alone: its request would have no `Origin`, which the gateway needs. */

/** The endings of the types that browsers play, as far as they differ from the subtype. */
const ENDINGS: Readonly<Record<string, string>> = { mpeg: 'mp3', mp4: 'm4a', 'x-wav': 'wav', wave: 'wav' };
const LONGEST_NAME = 60;

export function saveTrack(document: Document, title: string, audio: Blob): void {
  const address = URL.createObjectURL(audio);
  const link = document.createElement('a');
  link.href = address;
  link.download = fileName(title, audio.type);
  link.click();
  // The browser has begun to save by then.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** The title, without what file systems do not allow in names, and the ending of the media type. */
export function fileName(title: string, mediaType: string): string {
  const name = title
    .replace(/[\p{Cc}\\/:*?"<>|]+/gu, ' ')
    .replace(/\s+/g, ' ')
    .slice(0, LONGEST_NAME)
    .trim();
  const [subtype = ''] = (mediaType.split('/')[1] ?? '').split(';');
  return `${name || 'track'}.${ENDINGS[subtype] ?? (subtype || 'audio')}`;
}
