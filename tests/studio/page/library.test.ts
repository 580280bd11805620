import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { createLibrary } from '../../../src/demo/studio/library.ts';
import { enter } from '../../../src/demo/studio/order-fields.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { readCreations } from '../../../src/demo/studio/records.ts';
import { openPart, shownText } from './page.ts';

const TITLES = ['Rain', 'Snow at night', 'Café, at night', 'Mist', 'Hail', 'Fog', 'Wind', 'Night'];

it.each([
  [' NIGHT  at ', ['Snow at night', 'Café, at night'], '2 of 8 tracks'],
  ['cafe', ['Café, at night'], '1 of 8 tracks'],
  ['sunshine', [], english.notFound.replace('{all:number}', '8')],
])(
  'the search for %j in a library finds and plays %j, until the library is that of another account',
  (...row) => {
    const [query, expected, said] = row;
    const { root, text, shown } = openPart('library');
    const nothing = async () => {};
    const library = createLibrary(root, {
      ...{ text, onPlay() {}, onPause() {}, onAgain() {}, shareUrl: () => '' },
      ...{
        onSetVisibility: nothing,
        onDownload: nothing,
        copy: nothing,
        onRename: nothing,
        onDelete: nothing,
      },
    });
    const show = () => library.show(readCreations(TITLES.map((title) => ({ id: title, title }))));
    const found = () => {
      const rows = [...root.querySelectorAll('li')].filter(({ hidden }) => !hidden);
      return [rows.map((row) => shownText(part(row, 'title'))), shown('found')];
    };
    show();
    enter(part<HTMLInputElement>(root, 'search'), query);
    expect(found()).toEqual([expected, said]);
    for (const [index, id] of expected.entries()) {
      expect(library.neighbour(id, 1)?.id).toBe(expected[index + 1] ?? expected[0] ?? '');
      expect(library.neighbour(id, -1)?.id).toBe(expected.at(index - 1) ?? '');
      expect(library.following(id)?.id).toBe(expected[index + 1]);
    }
    expect(library.following('not shown')).toBeUndefined();
    library.show(undefined);
    show();
    expect(found()).toEqual([TITLES, '']);
  },
);
