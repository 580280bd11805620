import { expect, it } from 'bun:test';
import { openMemory } from '../../../src/demo/studio/browser-memory.ts';
import { english } from '../../../src/demo/studio/english.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { swahili } from '../../../src/demo/studio/swahili.ts';
import { connectLanguageSelect, createText } from '../../../src/demo/studio/text.ts';
import { fire, openPage } from './page.ts';

it('the texts have the same placeholders in both languages', () => {
  const shapes = (texts: Readonly<Record<string, string>>) =>
    Object.entries(texts).map(([key, text]) => [key, ...(text.match(/\{[^}]*\}/g) ?? []).sort()].join(' '));
  expect(shapes(swahili).sort()).toEqual(shapes(english).sort());
});

it.each([
  [['sw-KE', 'en'], 'sw', 'Ingia'],
  [['de', 'sw'], 'sw', 'Ingia'],
  [['__proto__', 'toString'], 'en', 'Sign in'],
])('the language of the page for a browser that prefers %j is %s', (languages, expected, signIn) => {
  const { documentElement, body } = openPage(languages).document;
  expect([documentElement.lang, part(body, 'sign-in').textContent]).toEqual([expected, signIn]);
});

it('the language is changed by the select for all texts that are there, and remembered unless it is none any more', () => {
  const { document, storage, text } = openPage();
  const advice = part(document, 'advice');
  const select = part<HTMLSelectElement>(document, 'language');
  connectLanguageSelect(select, text);
  text.write(advice, 'busy', { seconds: 1_234 });
  select.value = 'sw';
  fire(select, 'change');
  expect(advice.textContent).toBe('Jaribu tena baada ya sekunde 1,234.');
  expect(part(document, 'position').getAttribute('aria-label')).toBe('Mahali');
  const next = () => createText({ document, storage, languages: ['en'] }).language;
  expect([document.documentElement.lang, next()]).toEqual(['sw', 'sw']);
  for (const key of Object.keys(storage)) storage.setItem(key, 'tlh');
  expect(next()).toBe('en');
  expect(openMemory(() => storage)).toBe(storage);
});
