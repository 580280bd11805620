import { describe, expect, it } from 'bun:test';
import { createLibrary } from '../../../src/demo/studio/library.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import type { Creation } from '../../../src/demo/studio/records.ts';
import { button, openPage } from './page.ts';

function track(id: string, changes: Partial<Creation> = {}): Creation {
  const plain = { prompt: `Song ${id}`, seconds: 30, isGenerating: false, isPublic: false };
  return { id, ...plain, createdAt: undefined, ...changes };
}

function openLibrary() {
  const { document, text } = openPage();
  const root = part(document, 'library');
  const list = part(root, 'list');
  const library = createLibrary(root, {
    text,
    onPlay: () => {},
    onSetVisibility: () => Promise.resolve(),
    shareUrl: ({ id }) => `https://studio.test/?listen=${id}`,
    copy: () => Promise.resolve(),
  });
  const titles = () => [...list.children].map((item) => part(item, 'title').textContent);
  const current = () => [...list.children].map((item) => item.getAttribute('aria-current')).indexOf('true');
  return { document, root, list, library, titles, current };
}

describe('the library', () => {
  it('is a list that is called Library', () => {
    const { document, list } = openLibrary();
    expect(list.getAttribute('role')).toBe('list');
    const label = document.querySelector(`#${list.getAttribute('aria-labelledby')}`);
    expect(label?.textContent).toBe('Library');
  });

  it('loads, is filled, is empty, and loads again for the next person', () => {
    const { root, library, titles } = openLibrary();
    expect(root.dataset['state']).toBe('loading');
    library.show([track('a')]);
    expect(root.dataset['state']).toBe('filled');
    library.show([]);
    expect(root.dataset['state']).toBe('empty');
    library.show([track('a')]);
    library.show(undefined);
    expect(root.dataset['state']).toBe('loading');
    expect(titles()).toEqual([]);
  });

  it('has the tracks in the order that it is given, whatever it had before', () => {
    const { library, titles } = openLibrary();
    const show = (ids: string) => library.show([...ids].map((id) => track(id)));
    for (const ids of ['cba', 'dcba', 'da', 'abcd', 'xd', '', 'ab']) {
      show(ids);
      expect(titles()).toEqual([...ids].map((id) => `Song ${id}`));
    }
  });

  it('shows what has become of a track', () => {
    const { list, library } = openLibrary();
    library.show([track('a', { isGenerating: true })]);
    library.show([track('a', { prompt: 'Renamed' })]);
    expect(part(list, 'title').textContent).toBe('Renamed');
    expect(button(list, 'Play').hidden).toBe(false);
  });

  it('keeps the focus, and the element that has it, when other tracks come, go and change', () => {
    const { document, list, library } = openLibrary();
    library.show([track('b'), track('a')]);
    const publish = part(list.children[1] ?? list, 'publish');
    publish.focus();
    library.show([track('d'), track('c'), track('b'), track('a', { isPublic: true })]);
    expect(document.activeElement === publish).toBe(true);
    library.show([track('a', { isPublic: true })]);
    expect(document.activeElement === publish).toBe(true);
    expect(publish.textContent).toBe('Unpublish');
  });

  it('marks the track that the player has, and does so for one that comes later', () => {
    const { library, current } = openLibrary();
    library.show([track('b'), track('a')]);
    expect(current()).toBe(-1);
    library.markPlaying('a');
    expect(current()).toBe(1);
    library.markPlaying('c');
    expect(current()).toBe(-1);
    library.show([track('c'), track('b'), track('a')]);
    expect(current()).toBe(0);
    library.markPlaying(undefined);
    expect(current()).toBe(-1);
  });
});
