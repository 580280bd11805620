import { describe, expect, it } from 'bun:test';
import { createLibraryItem, type LibraryItemOptions } from '../../../src/demo/studio/library-item.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import type { Creation } from '../../../src/demo/studio/records.ts';
import { button, openPage, settle, shownText } from './page.ts';

const PRIVATE: Creation = {
  id: 'c1',
  prompt: 'Rain on a tin roof',
  seconds: 95,
  isGenerating: false,
  isPublic: false,
  createdAt: new Date('2026-03-04T05:06:07Z'),
};
const PUBLIC: Creation = { ...PRIVATE, isPublic: true };

function openItem(first: Creation, options: Partial<LibraryItemOptions> = {}) {
  const { document, text } = openPage();
  const item = createLibraryItem(document, first, {
    text,
    onPlay: () => {},
    onSetVisibility: () => Promise.resolve(),
    shareUrl: ({ id }) => `https://studio.test/?listen=${id}`,
    copy: () => Promise.resolve(),
    ...options,
  });
  document.body.append(item.element);
  item.update(first);
  return { text, item, element: item.element };
}

describe('a track of the library', () => {
  it('tells what it is', () => {
    const { element } = openItem(PRIVATE);
    expect(shownText(element)).toBe('Rain on a tin roof 1:35 Mar 4, 2026, 5:06 AM Private Play Publish');
  });

  it('has no date where none is known', () => {
    const { element } = openItem({ ...PRIVATE, createdAt: undefined });
    expect(part(element, 'date').textContent).toBe('');
  });

  it('tells its buttons from those of other tracks by its title, not by their names', () => {
    const { element } = openItem(PUBLIC);
    const { id } = part(element, 'title');
    for (const name of ['Play', 'Unpublish', 'Share']) {
      expect(button(element, name).getAttribute('aria-describedby')).toBe(id);
    }
    expect(openItem(PUBLIC).element.querySelector(`#${id}`)).toBeNull();
  });

  it('that is being made says so, and cannot be played', () => {
    const { element, item } = openItem({ ...PRIVATE, isGenerating: true });
    expect(element.dataset['state']).toBe('generating');
    expect(part(element, 'status').textContent).toBe('Being made');
    expect(button(element, 'Play').hidden).toBe(true);
    item.update(PRIVATE);
    expect(element.dataset['state']).toBe('ready');
    expect(part(element, 'status').textContent).toBe('Private');
    expect(button(element, 'Play').hidden).toBe(false);
  });

  it('is played as it is now, not as it was at first', () => {
    const played: Creation[] = [];
    const { element, item } = openItem(PRIVATE, { onPlay: (creation) => void played.push(creation) });
    item.update(PUBLIC);
    button(element, 'Play').click();
    expect(played).toEqual([PUBLIC]);
  });

  it('follows the language', () => {
    const { element, text } = openItem(PUBLIC);
    text.choose('sw');
    expect(shownText(element)).toEndWith('Hadharani Cheza Acha kuchapisha Shiriki');
  });
});

describe('its visibility', () => {
  it('is offered as a change to the other one', () => {
    const asked: unknown[] = [];
    const onSetVisibility = async ({ id }: Creation, isPublic: boolean) => void asked.push([id, isPublic]);
    button(openItem(PRIVATE, { onSetVisibility }).element, 'Publish').click();
    button(openItem(PUBLIC, { onSetVisibility }).element, 'Unpublish').click();
    expect(asked).toEqual([
      ['c1', true],
      ['c1', false],
    ]);
  });

  it('is changed once at a time', async () => {
    const changes: PromiseWithResolvers<void>[] = [];
    const { element } = openItem(PRIVATE, {
      onSetVisibility() {
        const change = Promise.withResolvers<void>();
        changes.push(change);
        return change.promise;
      },
    });
    const publish = button(element, 'Publish');
    publish.click();
    publish.click();
    expect(changes).toHaveLength(1);
    expect(publish.getAttribute('aria-disabled')).toBe('true');
    changes[0]?.resolve();
    await settle();
    expect(publish.hasAttribute('aria-disabled')).toBe(false);
    publish.click();
    expect(changes).toHaveLength(2);
  });
});

describe('its link', () => {
  it('is offered for a public track only', () => {
    expect(button(openItem(PRIVATE).element, 'Share').hidden).toBe(true);
    expect(button(openItem(PUBLIC).element, 'Share').hidden).toBe(false);
  });

  it('is copied and shown', async () => {
    const copied: string[] = [];
    const { element } = openItem(PUBLIC, { copy: async (address) => void copied.push(address) });
    expect(part(element, 'link-row').hidden).toBe(true);
    button(element, 'Share').click();
    await settle();
    expect(copied).toEqual(['https://studio.test/?listen=c1']);
    expect(shownText(part(element, 'link-row'))).toBe('Link copied https://studio.test/?listen=c1');
    expect(part<HTMLAnchorElement>(element, 'link').href).toBe('https://studio.test/?listen=c1');
    expect(part(element, 'link-note').getAttribute('role')).toBe('status');
  });

  it('is shown to be copied by hand where the browser does not let the page', async () => {
    const { element } = openItem(PUBLIC, { copy: () => Promise.reject(new Error('no clipboard')) });
    button(element, 'Share').click();
    await settle();
    expect(shownText(part(element, 'link-row'))).toBe('Copy this link https://studio.test/?listen=c1');
  });

  it('goes away when the track is private again, and stays away when it is published once more', async () => {
    const { element, item } = openItem(PUBLIC);
    button(element, 'Share').click();
    await settle();
    item.update(PRIVATE);
    expect(shownText(element)).not.toContain('listen=');
    item.update(PUBLIC);
    expect(shownText(element)).not.toContain('listen=');
  });
});
