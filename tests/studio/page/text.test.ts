import { describe, expect, it } from 'bun:test';
import { openMemory } from '../../../src/demo/studio/browser-memory.ts';
import { english } from '../../../src/demo/studio/english.ts';
import { formatText, type Values } from '../../../src/demo/studio/formats.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { swahili } from '../../../src/demo/studio/swahili.ts';
import { connectLanguageSelect, createText } from '../../../src/demo/studio/text.ts';
import { NOW } from '../../client/fake-time.ts';
import { fire, MARKUP, openPage, viewOf } from './page.ts';

const SOURCES = ['data-text', 'data-label', 'data-placeholder', 'data-tooltip'];

describe('the texts', () => {
  it('have the same placeholders in both languages, and none is empty', () => {
    const shapes = (texts: Readonly<Record<string, string>>) =>
      Object.entries(texts).map(([key, text]) => [key, ...(text.match(/\{[^}]*\}/g) ?? []).sort()].join(' '));
    expect(shapes(swahili).sort()).toEqual(shapes(english).sort());
    for (const text of Object.values({ ...english, ...swahili })) expect(text.trim()).not.toBe('');
  });

  it('are all that the page says, and stand in its markup in English', () => {
    const { document } = openPage();
    const templates = [...document.querySelectorAll('template')].map(({ content }) => content);
    const elements = [document.body, ...templates].flatMap((root) => [...root.querySelectorAll('*')]);
    const keys = elements.flatMap((element) => SOURCES.map((source) => element.getAttribute(source)));
    expect(keys).toContainValues(['signIn', 'position', 'promptExample', 'play']);
    expect(keys.filter((key) => key !== null && !Object.hasOwn(english, key))).toEqual([]);
    const isText = ({ nodeType, textContent }: Node) => nodeType === 3 && /\p{L}/u.test(textContent ?? '');
    const unnamed = elements.filter(
      (element) => !element.hasAttribute('data-text') && [...element.childNodes].some(isText),
    );
    expect(unnamed.map(({ textContent }) => textContent)).toEqual(['English', 'Kiswahili']);
    const asItCame = new (viewOf(document).DOMParser)().parseFromString(MARKUP, 'text/html');
    const words = ({ textContent }: Element) => textContent.replace(/\s+/g, ' ');
    expect(words(document.body)).toBe(words(asItCame.body));
  });
});

it.each<[text: string, values: Values, expected: string, language: string]>([
  ['{n:number}', { n: 4_100.5 }, '4.100,5', 'de'],
  ['{t:date}', { t: NOW }, '4 Mac 2026, 05:06', 'sw'],
  ['{n} {s:seconds} {m:milliseconds}', { n: 4_100, s: 1_260, m: 123.4 }, '4100 1.3s 123ms', 'en-GB'],
  ['{a:bytes} {b:bytes} {c:bytes}', { a: 0, b: 999_499, c: 1e6 }, '0 kB 999 kB 1 MB', 'en-GB'],
  ['{a:clock} {b:clock} {t:time}', { a: 59.9, b: 60, t: NOW }, '0:59 1:00 05:06:07', 'en-GB'],
  ['{a} {b} {a}', { a: 1 }, '1 {b} 1', 'en-GB'],
  ['{a}{b}', { a: '{b}', b: '$&' }, '{b}$&', 'en-GB'],
])('a value in a text turns %s with %j into %s', (text, values, expected, language) => {
  expect(formatText(text, values, language)).toBe(expected);
});

describe('the language of the page', () => {
  it.each([
    [['sw-KE', 'en'], 'sw', 'Ingia'],
    [['en-GB', 'sw'], 'en', 'Sign in'],
    [['de', 'sw'], 'sw', 'Ingia'],
    [['__proto__', 'toString'], 'en', 'Sign in'],
  ])('for a browser that prefers %j is %s', (languages, expected, signIn) => {
    const { documentElement, body } = openPage(languages).document;
    expect([documentElement.lang, part(body, 'sign-in').textContent]).toEqual([expected, signIn]);
  });

  it('is changed by the select for all texts that are there, and remembered unless it is none any more', () => {
    const { document, storage, text } = openPage();
    const [said, advice] = [part(document, 'said'), part(document, 'advice')];
    const select = part<HTMLSelectElement>(document, 'language');
    connectLanguageSelect(select, text);
    for (const seconds of [5, 1_234]) text.write(said, 'busy', { seconds });
    text.write(advice, 'later');
    text.write(advice, undefined);
    select.value = 'sw';
    fire(select, 'change');
    expect([said.textContent, advice.textContent]).toEqual(['Jaribu tena baada ya sekunde 1,234.', '']);
    expect(part(document, 'position').getAttribute('aria-label')).toBe('Mahali');
    expect(part(document, 'prompt').getAttribute('placeholder')).toStartWith('Jioni tulivu');
    const next = () => createText({ document, storage, languages: ['en'] }).language;
    expect([document.documentElement.lang, next()]).toEqual(['sw', 'sw']);
    for (const key of Object.keys(storage)) storage.setItem(key, 'tlh');
    expect(next()).toBe('en');
  });

  it('is remembered for this visit where the browser allows no storage', () => {
    const memory = openMemory(() => {
      throw new DOMException('not allowed', 'SecurityError');
    });
    expect(memory.getItem('key')).toBeNull();
    memory.setItem('key', 'value');
    expect(memory.getItem('key')).toBe('value');
    const { storage } = openPage();
    expect(openMemory(() => storage)).toBe(storage);
  });
});
