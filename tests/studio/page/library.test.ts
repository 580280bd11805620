import { expect, it } from 'bun:test';
import { createLibrary } from '../../../src/demo/studio/library.ts';
import { enter } from '../../../src/demo/studio/order-fields.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { readCreations } from '../../../src/demo/studio/records.ts';
import { openPart, shownText } from './page.ts';

it('a library plays on among what is searched for and ready, and forgets the search with the account', () => {
  const { root, text } = openPart('library');
  const nothing = async () => {};
  const library = createLibrary(root, {
    ...{ text, onPlay() {}, onPause() {}, onAgain() {}, shareUrl: () => '' },
    ...{ onSetVisibility: nothing, onDownload: nothing, copy: nothing, onRename: nothing, onDelete: nothing },
  });
  const titles = ['Night rain', 'Snow', 'Café, at night', 'Mist', 'Hail', 'Fog', 'Wind', 'Night'];
  const creations = titles.map((title) => ({ id: title, title }));
  const show = () =>
    library.show(readCreations([{ id: 'new', title: 'Night', status: 'queued' }, ...creations]));
  const rows = () => [...root.querySelectorAll('li')].filter(({ hidden }) => !hidden);
  show();
  enter(part<HTMLInputElement>(root, 'search'), ' NIGHT  cafe');
  expect(rows().map((row) => shownText(part(row, 'title')))).toEqual(['Café, at night']);
  enter(part<HTMLInputElement>(root, 'search'), 'night');
  const around = ['Night rain', 'Café, at night', 'Night', 'Snow'].map((id) =>
    [library.neighbour(id, -1), library.neighbour(id, 1), library.following(id)].map((track) => track?.id),
  );
  expect(around).toEqual([
    ['Night', 'Café, at night', 'Café, at night'],
    ['Night rain', 'Night', 'Night'],
    ['Café, at night', 'Night rain', undefined],
    ['Night rain', 'Night rain', undefined],
  ]);
  library.show(undefined);
  show();
  expect(rows()).toHaveLength(9);
});
