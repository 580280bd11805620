import { describe, expect, it, mock } from 'bun:test';
import { part } from '../../../src/demo/studio/parts.ts';
import type { Creation } from '../../../src/demo/studio/records.ts';
import { shareAddress, sharedId, showSharedTrack } from '../../../src/demo/studio/shared-track.ts';
import { publicTrack } from '../../../src/demo/studio/tracks.ts';
import { openPage, shownText } from './page.ts';

const RECORD = { id: 'c1', prompt: 'Rain', music_length_ms: 30_000, created_at: '2026-03-04T05:06:07Z' };

function openShared(describe: () => Promise<unknown>) {
  const { document, text } = openPage();
  const root = part(document, 'shared');
  const onFound = mock((_creation: Creation) => {});
  const isHiddenAtFirst = root.hidden;
  const shown = showSharedTrack(root, { text, describe, onFound });
  return { root, text, onFound, isHiddenAtFirst, shown };
}

describe('the address of a shared track', () => {
  it.each(['c1', 'a b&c=d', 'ümläut/../x', '#'])('leads to that track and to no other: %s', (id) => {
    const address = shareAddress('https://studio.test', id);
    expect(address).toStartWith('https://studio.test/?listen=');
    expect(sharedId(address)).toBe(id);
  });

  it.each(['https://studio.test/', 'https://studio.test/?listen=', 'https://studio.test/?code=x#listen=c1'])(
    'is not %s',
    (address) => {
      expect(sharedId(address)).toBeUndefined();
    },
  );
});

describe('a shared track', () => {
  it('is looked for in sight, and found', async () => {
    const found = Promise.withResolvers<unknown>();
    const { root, onFound, isHiddenAtFirst, shown } = openShared(() => found.promise);
    expect(isHiddenAtFirst).toBe(true);
    expect(shownText(root)).toBe('Looking for the track…');
    found.resolve(RECORD);
    await shown;
    expect(shownText(root)).toBe('A track for you Made Mar 4, 2026, 5:06 AM');
    expect(onFound.mock.calls).toEqual([
      [expect.objectContaining({ id: 'c1', prompt: 'Rain', seconds: 30 })],
    ]);
  });

  it('has no date where none is known', async () => {
    const { root, shown } = openShared(async () => ({ id: 'c1' }));
    await shown;
    expect(shownText(root)).toBe('A track for you');
  });

  it('that is not public any more is told as such, with what to do', async () => {
    const { root, text, onFound, shown } = openShared(() => Promise.reject(new Error('404')));
    await shown;
    expect(shownText(root)).toBe(
      'This track is not there It is not public any more, or the link is not complete. Ask for a new one.',
    );
    text.choose('sw');
    expect(shownText(root)).toStartWith('Wimbo huu haupo');
    expect(onFound).not.toHaveBeenCalled();
  });

  it('is played without the session', () => {
    const client = { publicContentUrl: (id: string) => `https://gateway.test/public/${id}/content` };
    expect(publicTrack(client, { id: 'c1', prompt: 'Rain', seconds: 30 })).toEqual({
      id: 'c1',
      title: 'Rain',
      seconds: 30,
      url: 'https://gateway.test/public/c1/content',
      crossOrigin: 'anonymous',
    });
  });
});
