import { describe, expect, it } from 'bun:test';
import { openMemory } from '../../../src/demo/studio/browser-memory.ts';
import { english } from '../../../src/demo/studio/english.ts';
import { formatText, type Values } from '../../../src/demo/studio/formats.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { swahili } from '../../../src/demo/studio/swahili.ts';
import { connectLanguageSelect, createText } from '../../../src/demo/studio/text.ts';
import { NOW } from '../fake-time.ts';
import { fire, MARKUP, openPage, viewOf } from './page.ts';

const SOURCES = ['data-text', 'data-label', 'data-placeholder', 'data-tooltip'];

function placeholders(text: string): string[] {
  return [...text.matchAll(/\{[^}]*\}/g)].map(([whole]) => whole).sort();
}

/** The elements of the page's body, and of its templates. */
function elementsOf(document: Document): Element[] {
  const templates = [...document.querySelectorAll('template')].map(({ content }) => content);
  return [document.body, ...templates].flatMap((root) => [...root.querySelectorAll('*')]);
}

/** The text of the element itself, without that of its children. */
function ownText({ childNodes }: Element): string {
  const texts = [...childNodes].filter(({ nodeType }) => nodeType === 3);
  return texts.map(({ textContent }) => textContent).join('');
}

const words = ({ textContent }: Element) => textContent.replace(/\s+/g, ' ');

describe('the texts', () => {
  it('have the same keys and placeholders in both languages, and none is empty', () => {
    const shapes = (texts: Readonly<Record<string, string>>) =>
      Object.entries(texts)
        .map(([key, text]) => `${key}: ${placeholders(text)} ${text.trim() !== ''}`)
        .sort();
    expect(shapes(swahili)).toEqual(shapes(english));
    expect(shapes(english).filter((shape) => shape.endsWith('false'))).toEqual([]);
  });

  it('are all that the page says, and stand in its markup in English', () => {
    const { document } = openPage();
    const elements = elementsOf(document);
    const keys = elements.flatMap((element) => SOURCES.map((source) => element.getAttribute(source)));
    expect(keys).toContainValues(['signIn', 'position', 'promptExample', 'play']);
    expect(keys.filter((key) => key !== null && !Object.hasOwn(english, key))).toEqual([]);
    const unnamed = elements.filter(
      (element) => !element.hasAttribute('data-text') && /\p{L}/u.test(ownText(element)),
    );
    expect(unnamed.map(({ textContent }) => textContent)).toEqual(['English', 'Kiswahili']);
    const asItCame = new (viewOf(document).DOMParser)().parseFromString(MARKUP, 'text/html');
    expect(words(document.body)).toBe(words(asItCame.body));
  });
});

describe('a value in a text', () => {
  it.each<[text: string, values: Values, expected: string, language?: string]>([
    ['{n:number}', { n: 4_100.5 }, '4.100,5', 'de'],
    ['{t:date}', { t: NOW }, '4 Mac 2026, 05:06', 'sw'],
    ['{n}', { n: 4_100 }, '4100'],
    ['{s:seconds}', { s: 1_260 }, '1.3s'],
    ['{s:milliseconds}', { s: 123.4 }, '123ms'],
    ['{b:bytes}', { b: 0 }, '0 kB'],
    ['{b:bytes}', { b: 999_499 }, '999 kB'],
    ['{b:bytes}', { b: 1_000_000 }, '1 MB'],
    ['{c:clock}', { c: 59.9 }, '0:59'],
    ['{c:clock}', { c: 60 }, '1:00'],
    ['{t:time}', { t: NOW }, '05:06:07'],
    ['{a} {b} {a}', { a: 1 }, '1 {b} 1'],
    ['{a}{b}', { a: '{b}', b: '$&' }, '{b}$&'],
  ])('turns %s with %j into %s', (text, values, expected, language = 'en-GB') => {
    expect(formatText(text, values, language)).toBe(expected);
  });
});

describe('the language of the page', () => {
  it.each([
    [['sw-KE', 'en'], 'sw'],
    [['en-GB', 'sw'], 'en'],
    [['de', 'sw'], 'sw'],
    [['__proto__', 'toString'], 'en'],
  ])('for a browser that prefers %j is %s', (languages, expected) => {
    const { document } = openPage(languages);
    expect(document.documentElement.lang).toBe(expected);
    expect(part(document, 'sign-in').textContent).toBe(expected === 'sw' ? 'Ingia' : 'Sign in');
  });

  it('is the remembered choice, unless that is not a language any more', () => {
    const { document, storage, text } = openPage(['en']);
    text.choose('sw');
    expect(createText({ document, storage, languages: ['en'] }).language).toBe('sw');
    for (const key of Object.keys(storage)) storage.setItem(key, 'tlh');
    expect(createText({ document, storage, languages: ['en'] }).language).toBe('en');
  });

  it('is changed with the select, which shows the present one', () => {
    const { document, text } = openPage(['sw']);
    const select = part<HTMLSelectElement>(document, 'language');
    connectLanguageSelect(select, text);
    expect(select.value).toBe('sw');
    select.value = 'en';
    fire(select, 'change');
    expect([document.documentElement.lang, document.title]).toEqual(['en', 'Music Studio']);
  });

  it('reaches texts, labels, placeholders and the latest values, but no text that was removed', () => {
    const { document, text } = openPage();
    const [said, advice] = [part(document, 'said'), part(document, 'advice')];
    for (const seconds of [5, 1_234]) text.write(said, 'busy', { seconds });
    text.write(advice, 'later');
    text.write(advice, undefined);
    text.choose('sw');
    expect(said.textContent).toBe('Jaribu tena baada ya sekunde 1,234.');
    expect(advice.textContent).toBe('');
    expect(part(document, 'position').getAttribute('aria-label')).toBe('Mahali');
    expect(part(document, 'prompt').getAttribute('placeholder')).toStartWith('Jioni tulivu');
  });
});

describe('the memory of the browser', () => {
  it('is its storage, or lasts for this visit where storage is not allowed', () => {
    const { storage } = openPage();
    openMemory(() => storage).setItem('key', 'value');
    expect(storage.getItem('key')).toBe('value');
    const memory = openMemory(() => {
      throw new DOMException('not allowed', 'SecurityError');
    });
    expect(memory.getItem('key')).toBeNull();
    memory.setItem('key', 'value');
    expect(memory.getItem('key')).toBe('value');
  });
});
