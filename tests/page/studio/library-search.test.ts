import { describe, expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { createLibrary } from '../../../src/demo/studio/library.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { readCreations } from '../../../src/demo/studio/records.ts';
import { enter, openPart, shownText, viewOf } from './page.ts';

const PROMPTS = ['Rain', 'Snow at night', 'Café, at night', 'مَطَر', 'Hail', 'Fog', 'Wind', 'Night'];

function openLibrary(prompts: readonly string[] = PROMPTS) {
  const { document, root, text, shown } = openPart('library');
  const library = createLibrary(root, {
    text,
    onPlay() {},
    onPause() {},
    onSetVisibility: async () => {},
    onDownload: async () => {},
    onAgain() {},
    shareUrl: () => '',
    copy: async () => {},
  });
  const show = (titles: readonly string[]) =>
    library.show(readCreations(titles.map((id) => ({ id, prompt: id }))));
  show(prompts);
  const field = part<HTMLInputElement>(root, 'search');
  const titles = () =>
    [...root.querySelectorAll('li')]
      .filter(({ hidden }) => !hidden)
      .map((row) => shownText(part(row, 'title')));
  const pressEscape = () => {
    const { KeyboardEvent } = viewOf(document);
    field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
  };
  return { text, shown, library, show, field, titles, pressEscape };
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
    const { text, shown, field, titles, pressEscape } = openLibrary();
    expect(shown('found')).toBe('');
    enter(field, 'night');
    expect(shown('found')).toBe('3 of 8 tracks');
    text.choose('sw');
    expect(shown('found')).toBe('Nyimbo 3 kati ya 8');
    text.choose('en');
    enter(field, 'sunshine');
    expect(shown('found')).toBe(english.notFound.replace('{all:number}', '8'));
    pressEscape();
    expect([field.value, shown('found')]).toEqual(['', '']);
    expect(titles()).toEqual(PROMPTS);
  });

  it('goes on while the library changes, and leads from track to track among what is found', () => {
    const { library, show, field, titles, shown } = openLibrary();
    enter(field, 'night');
    show(['A new night', ...PROMPTS]);
    expect(titles()).toEqual(['A new night', 'Snow at night', 'Café, at night', 'Night']);
    expect(shown('found')).toBe('4 of 9 tracks');
    expect(library.neighbour('Snow at night', 1)?.id).toBe('Café, at night');
    expect(library.neighbour('A new night', -1)?.id).toBe('Night');
    expect(library.neighbour('Rain', 1)?.id).toBe('A new night');
  });

  it('is offered from eight tracks on, and forgotten with the library', () => {
    const { library, show, field, titles } = openLibrary(PROMPTS.slice(1));
    expect(field.hidden).toBe(true);
    show(PROMPTS);
    expect(field.hidden).toBe(false);
    enter(field, 'night');
    library.show(undefined);
    expect([field.hidden, field.value]).toEqual([true, '']);
    show(PROMPTS);
    expect(titles()).toEqual(PROMPTS);
  });
});
