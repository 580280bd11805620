import { describe, expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { createLibrary } from '../../../src/demo/studio/library.ts';
import { enter } from '../../../src/demo/studio/order-fields.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { readCreations } from '../../../src/demo/studio/records.ts';
import { openPart, shownText, viewOf } from './page.ts';

const PROMPTS = ['Rain', 'Snow at night', 'Café, at night', 'Mist', 'Hail', 'Fog', 'Wind', 'Night'];

function openLibrary() {
  const { document, root, text, shown } = openPart('library');
  const nothing = async () => {};
  const library = createLibrary(root, {
    ...{ text, onPlay() {}, onPause() {}, onAgain() {}, shareUrl: () => '' },
    ...{ onSetVisibility: nothing, onDownload: nothing, copy: nothing, onRename: nothing, onDelete: nothing },
  });
  /** Every other one has a title, which is searched like a prompt. */
  const show = (ids: readonly string[]) =>
    library.show(readCreations(ids.map((id, index) => ({ id, [index % 2 ? 'title' : 'prompt']: id }))));
  return { document, root, shown, library, show };
}

describe('the search in a library', () => {
  it.each([
    [' NIGHT  at ', ['Snow at night', 'Café, at night'], '2 of 8 tracks'],
    ['cafe', ['Café, at night'], '1 of 8 tracks'],
    ['sunshine', [], english.notFound.replace('{all:number}', '8')],
  ])('finds %j in the prompts and titles, until Escape or the end of the library', (query, ...row) => {
    const [expected, said] = row;
    const { document, root, shown, library, show } = openLibrary();
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
    expect(found()).toEqual([PROMPTS, '']);
    enter(field, query);
    library.show(undefined);
    show(PROMPTS);
    expect([found(), field.value]).toEqual([[PROMPTS, ''], '']);
  });
});

describe('the focus on Delete', () => {
  it.each<[track: string, query: string, removed: readonly string[], focused: string]>([
    ['Hail', '', ['Hail'], 'play Fog'],
    ['Night', '', ['Night'], 'play Wind'],
    ['Snow at night', 'night', ['Snow at night'], 'play Café, at night'],
    ['Hail', '', PROMPTS, 'heading'],
  ])('of %s, among what %j finds, goes when %j are removed to %j', (track, query, removed, focused) => {
    const { document, root, show } = openLibrary();
    show(PROMPTS);
    enter(part<HTMLInputElement>(root, 'search'), query);
    const row = [...root.querySelectorAll('li')].find((row) => shownText(part(row, 'title')) === track);
    part(row ?? root, 'delete').focus();
    show(PROMPTS.filter((id) => !removed.includes(id)));
    const { activeElement } = document;
    const title = activeElement?.closest('li')?.querySelector('[data-part=title]');
    expect([activeElement?.getAttribute('data-part'), title?.textContent].join(' ').trim()).toBe(focused);
  });
});
