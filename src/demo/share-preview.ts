/** The lines in the head of a shared track's page from which messengers make a preview. @see https://ogp.me */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { coverPath } from './studio/cover.ts';

const Shared = Type.Object({
  data: Type.Object({ title: Type.String(), author: Type.String(), prompt: Type.String() }),
});
const DEADLINE_MS = 1000;

/** @returns nothing when the address shares no track, and when its details do not come in time */
export async function sharePreview(address: URL, gatewayUrl: string): Promise<string> {
  const id = address.searchParams.get('listen');
  if (!id) return '';
  const track = `${gatewayUrl}/api/upstream/v1/music/public/${encodeURIComponent(id)}`;
  const init = { headers: { origin: address.origin }, signal: AbortSignal.timeout(DEADLINE_MS) };
  const body: unknown = await fetch(track, init)
    .then((response) => response.json())
    .catch(() => undefined);
  if (!Value.Check(Shared, body)) return '';
  const { title, author, prompt } = body.data;
  const properties = {
    'og:type': 'music.song',
    'og:site_name': 'Music Studio',
    'og:title': title,
    'og:description': `By ${author}`,
    'og:url': address.href,
    'og:image': new URL(coverPath({ id, prompt }), address).href,
  };
  const lines = Object.entries(properties).map(
    ([name, content]) => `<meta property="${name}" content="${Bun.escapeHTML(content)}" />`,
  );
  return lines.join('\n');
}
