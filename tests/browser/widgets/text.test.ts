import { describe, expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { swahili } from '../../../src/demo/studio/swahili.ts';
import { connectLanguageSelect, createText } from '../../../src/demo/studio/text.ts';
import { button, fire, MARKUP, openPage, viewOf } from './page.ts';

const SOURCES = ['data-text', 'data-label', 'data-placeholder'];

function placeholders(text: string): string[] {
  return [...text.matchAll(/\{[^}]*\}/g)].map(([whole]) => whole).sort();
}

/** The page's body, and what is in its templates. */
function rootsOf(document: Document): ParentNode[] {
  return [document.body, ...[...document.querySelectorAll('template')].map(({ content }) => content)];
}

function words(element: Element): string {
  return element.textContent.replace(/\s+/g, ' ');
}

/** What stands in the element itself, and in none below it. */
function ownText({ childNodes }: Element): string {
  const texts = [...childNodes].filter(({ nodeType }) => nodeType === 3);
  return texts.map(({ textContent }) => textContent).join('');
}

describe('the texts', () => {
  it('are the same in both languages: keys, placeholders and kinds; and none is empty', () => {
    expect(Object.keys(swahili).sort()).toEqual(Object.keys(english).sort());
    for (const [key, text] of Object.entries(english)) {
      const other = Object.entries(swahili).find(([name]) => name === key)?.[1] ?? '';
      expect({ key, in: placeholders(other) }).toEqual({ key, in: placeholders(text) });
      expect(text.trim()).not.toBe('');
      expect(other.trim()).not.toBe('');
    }
  });

  it('have every key that the page names', () => {
    const keys = rootsOf(openPage().document).flatMap((root) =>
      SOURCES.flatMap((source) =>
        [...root.querySelectorAll(`[${source}]`)].map((element) => element.getAttribute(source)),
      ),
    );
    expect(keys).toContainValues(['signIn', 'position', 'promptExample', 'play']);
    expect(keys.filter((key) => key === null || !Object.hasOwn(english, key))).toEqual([]);
  });

  it('stand in the markup in English, for as long as no script has run', () => {
    const { document } = openPage();
    const asItCame = new (viewOf(document).DOMParser)().parseFromString(MARKUP, 'text/html');
    expect(words(document.body)).toBe(words(asItCame.body));
  });

  it('are all that the page says: no word of it is without a key', () => {
    const { document } = openPage();
    const unnamed = rootsOf(document).flatMap((root) =>
      [...root.querySelectorAll('*')].filter(
        (element) => !element.hasAttribute('data-text') && /\p{L}/u.test(ownText(element)),
      ),
    );
    expect(unnamed.map(({ textContent }) => textContent)).toEqual(['English', 'Kiswahili']);
  });
});

describe('the language', () => {
  it.each([
    [['sw-KE', 'en'], 'sw'],
    [['en-GB', 'sw'], 'en'],
    [['de', 'sw'], 'sw'],
    [['de', 'fr-CA'], 'en'],
    [[], 'en'],
    [['__proto__', 'toString'], 'en'],
  ])('of a browser that prefers %j is %s, and the page says so', (languages, expected) => {
    const { document } = openPage(languages);
    expect(document.documentElement.lang).toBe(expected);
    expect(button(document, expected === 'sw' ? 'Ingia' : 'Sign in').isConnected).toBe(true);
  });

  it('that was chosen is remembered, and counts before what the browser prefers', () => {
    const { document, storage, text } = openPage(['en']);
    text.choose('sw');
    expect(createText({ document, storage, languages: ['en'] }).language).toBe('sw');
  });

  it('that is remembered and not known any more is as if there was none', () => {
    const { document, storage, text } = openPage(['en']);
    text.choose('sw');
    for (const key of Object.keys(storage)) storage.setItem(key, 'tlh');
    expect(createText({ document, storage, languages: ['en'] }).language).toBe('en');
  });

  it('is changed with the select, which shows the one that is spoken', () => {
    const { document, text } = openPage(['sw']);
    const select = part<HTMLSelectElement>(document, 'language');
    connectLanguageSelect(select, text);
    expect(select.value).toBe('sw');
    select.value = 'en';
    fire(select, 'change');
    expect(document.documentElement.lang).toBe('en');
    expect(document.title).toBe('Music Studio');
  });
});

describe('a change of language', () => {
  it('reaches texts, labels and placeholders, those that a part has written too', () => {
    const { document, text } = openPage();
    text.write(part(document, 'said'), 'busy', { seconds: 1_234 });
    text.choose('sw');
    expect(document.documentElement.lang).toBe('sw');
    expect(part(document, 'said').textContent).toBe('Jaribu tena baada ya sekunde 1,234.');
    expect(part(document, 'position').getAttribute('aria-label')).toBe('Mahali');
    expect(part(document, 'prompt').getAttribute('placeholder')).toStartWith('Jioni tulivu');
  });

  it('does not bring back a text that was taken away', () => {
    const { document, text } = openPage();
    const element = part(document, 'said');
    text.write(element, 'later');
    text.write(element, undefined);
    text.choose('sw');
    expect(element.textContent).toBe('');
  });

  it('writes the values of the last time', () => {
    const { document, text } = openPage();
    const element = part(document, 'said');
    text.write(element, 'busy', { seconds: 5 });
    text.write(element, 'busy', { seconds: 6 });
    text.choose('sw');
    expect(element.textContent).toBe('Jaribu tena baada ya sekunde 6.');
  });
});
