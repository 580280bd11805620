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

it('the language is that of the browser until the select changes it, which is remembered unless it is none any more', () => {
  const { document, storage, text } = openPage();
  const advice = part(document, 'advice');
  const select = part<HTMLSelectElement>(document, 'language');
  connectLanguageSelect(select, text);
  text.write(advice, 'busy', { seconds: 1_234 });
  select.value = 'sw';
  fire(select, 'change');
  expect(advice.textContent).toBe('Jaribu tena baada ya sekunde 1,234.');
  expect(part(document, 'position').getAttribute('aria-label')).toBe('Mahali');
  const next = (...languages: string[]) => createText({ document, storage, languages }).language;
  expect([document.documentElement.lang, next('en')]).toEqual(['sw', 'sw']);
  for (const key of Object.keys(storage)) storage.setItem(key, 'tlh');
  expect([next('en', 'sw'), next('de', 'sw-KE'), next('__proto__')]).toEqual(['en', 'sw', 'en']);
  expect(openMemory(() => storage)).toBe(storage);
});
