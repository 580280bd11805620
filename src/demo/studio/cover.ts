/** Where a track's cover is. The Studio's server draws it from what the address says. */

/**
 * The path of the cover. Its colours are decided by the id, its waveform by the prompt, from which the upstream made the
 * sound: the audio itself would have to be loaded for each track of a library, and a messenger cannot decode it.
 */
export function coverPath({ id, prompt }: { readonly id: string; readonly prompt: string }): string {
  return `/cover/${digest(id)}${digest(prompt)}.png`;
}

/** The two numbers of such a path. Undefined if it is another one. */
export function readCoverPath(path: string): { readonly look: number; readonly sound: number } | undefined {
  const [, look, sound] = /^\/cover\/([0-9a-f]{8})([0-9a-f]{8})\.png$/.exec(path) ?? [];
  if (look === undefined || sound === undefined) return undefined;
  return { look: Number.parseInt(look, 16), sound: Number.parseInt(sound, 16) };
}

/** FNV-1a of 32 bits, because a browser's own digests are asynchronous. */
function digest(text: string): string {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, '0');
}
