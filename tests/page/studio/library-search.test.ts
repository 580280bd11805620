import { describe, expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { createLibrary } from '../../../src/demo/studio/library.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { readCreations } from '../../../src/demo/studio/records.ts';
import { enter, openPart, shownText, viewOf } from './page.ts';

const PROMPTS = ['Rain', 'Snow at night', 'Café, at night', 'مَطَر', 'Hail', 'Fog', 'Wind', 'Night'];

function openLibrary() {
  const { document, root, text, shown } = openPart('library');
  const nothing = async () => {};
  const library = createLibrary(root, {
    ...{ text, onPlay() {}, onPause() {}, onAgain() {}, shareUrl: () => '' },
    ...{ onSetVisibility: nothing, onDownload: nothing, copy: nothing },
  });
  const show = (titles: readonly string[]) =>
    library.show(readCreations(titles.map((id) => ({ id, prompt: id }))));
  show(PROMPTS);
  const field = part<HTMLInputElement>(root, 'search');
  const rows = () => [...root.querySelectorAll('li')].filter(({ hidden }) => !hidden);
  return {
    ...{ text, library, show, field },
    found: () => shown('found'),
    titles: () => rows().map((row) => shownText(part(row, 'title'))),
    pressEscape() {
      const { KeyboardEvent } = viewOf(document);
      field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
    },
  };
}

describe('the search in a library', () => {
  it.each([
    ['night', ['Snow at night', 'Café, at night', 'Night']],
    [' NIGHT  at ', ['Snow at night', 'Café, at night']],
    ['cafe', ['Café, at night']],
    ['مطر', ['مَطَر']],
    ['sunshine', []],
    ['  ', PROMPTS],
  ])('for %j finds the prompts with each of its words, without regard to accents', (query, expected) => {
    const { field, titles } = openLibrary();
    enter(field, query);
    expect(titles()).toEqual(expected);
  });

  it('says how many it has found, in either language, until Escape empties it', () => {
    const { text, found, field, titles, pressEscape } = openLibrary();
    expect(found()).toBe('');
    enter(field, 'night');
    text.choose('sw');
    expect(found()).toBe('Nyimbo 3 kati ya 8');
    text.choose('en');
    expect(found()).toBe('3 of 8 tracks');
    enter(field, 'sunshine');
    expect(found()).toBe(english.notFound.replace('{all:number}', '8'));
    pressEscape();
    expect([field.value, found(), titles()]).toEqual(['', '', PROMPTS]);
  });

  it('goes on while the library changes, leads from track to track among what is found, and ends with it', () => {
    const { library, show, field, found, titles } = openLibrary();
    enter(field, 'night');
    show(['A new night', ...PROMPTS]);
    expect(titles()).toEqual(['A new night', 'Snow at night', 'Café, at night', 'Night']);
    expect(found()).toBe('4 of 9 tracks');
    expect(library.neighbour('Snow at night', 1)?.id).toBe('Café, at night');
    expect(library.neighbour('A new night', -1)?.id).toBe('Night');
    expect(library.neighbour('Night', 1)?.id).toBe('A new night');
    expect(library.neighbour('Rain', 1)?.id).toBe('A new night');
    library.show(undefined);
    expect([field.hidden, field.value]).toEqual([true, '']);
    show(PROMPTS.slice(1));
    expect([field.hidden, titles()]).toEqual([true, PROMPTS.slice(1)]);
    show(PROMPTS);
    expect([field.hidden, titles()]).toEqual([false, PROMPTS]);
  });
});
