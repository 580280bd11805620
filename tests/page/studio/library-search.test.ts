import { describe, expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { createLibrary } from '../../../src/demo/studio/library.ts';
import { enter } from '../../../src/demo/studio/order-fields.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { readCreations } from '../../../src/demo/studio/records.ts';
import { openPart, shownText, viewOf } from './page.ts';

const PROMPTS = ['Rain', 'Snow at night', 'Café, at night', 'مَطَر', 'Hail', 'Fog', 'Wind', 'Night'];

describe('the search in a library', () => {
  it.each([
    ['night', ['Snow at night', 'Café, at night', 'Night'], '3 of 8 tracks'],
    [' NIGHT  at ', ['Snow at night', 'Café, at night'], '2 of 8 tracks'],
    ['cafe', ['Café, at night'], '1 of 8 tracks'],
    ['مطر', ['مَطَر'], '1 of 8 tracks'],
    ['sunshine', [], english.notFound.replace('{all:number}', '8')],
    ['  ', PROMPTS, ''],
  ])('finds %j in the prompts and titles, until Escape or the end of the library', (query, ...row) => {
    const [expected, said] = row;
    const { document, root, text, shown } = openPart('library');
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
    // Titles are searched like prompts.
    const show = (ids: string[]) =>
      library.show(readCreations(ids.map((id, index) => ({ id, [index % 2 ? 'title' : 'prompt']: id }))));
    const field = part<HTMLInputElement>(root, 'search');
    const found = () => {
      const rows = [...root.querySelectorAll('li')].filter(({ hidden }) => !hidden);
      return [rows.map((row) => shownText(part(row, 'title'))), shown('found')];
    };
    show(PROMPTS);
    enter(field, query);
    expect(found()).toEqual([expected, said]);
    for (const [index, id] of expected.entries()) {
      expect(library.neighbour(id, 1)?.id).toBe(expected[index + 1] ?? expected[0] ?? '');
      expect(library.neighbour(id, -1)?.id).toBe(expected.at(index - 1) ?? '');
      expect(library.following(id)?.id).toBe(expected[index + 1]);
    }
    expect(library.following('not shown')).toBeUndefined();
    field.dispatchEvent(new (viewOf(document).KeyboardEvent)('keydown', { key: 'Escape' }));
    expect([found(), field.value.trim()]).toEqual([[PROMPTS, ''], '']);
    enter(field, query);
    library.show(undefined);
    show(PROMPTS);
    expect([found(), field.value]).toEqual([[PROMPTS, ''], '']);
    show(PROMPTS.slice(1));
    expect([found(), field.hidden]).toEqual([[PROMPTS.slice(1), ''], true]);
  });
});
