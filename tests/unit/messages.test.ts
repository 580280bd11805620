import { describe, expect, it } from 'bun:test';
import { type Language, messages, preferredLanguage } from '../../src/gateway/http/messages.ts';

describe('the language of a message', () => {
  it.each<[language: Language, what: string, headers: string[]]>([
    ['en', 'English', ['en', 'en-GB,en;q=0.9']],
    ['en', 'a language that we do not have', ['fr', '*', 'swg', 'swahili', 'x-sw', 'fr;sw']],
    ['en', 'Swahili refused', ['sw;q=0', 'sw;q=0, *', 'sw;q=often, en']],
    ['en', 'Swahili with less weight', ['sw;q=0.8, en;q=0.9', 'sw-KE;q=0.1, en-GB;q=0.2']],
    ['en', 'nothing', ['', ',;,=;q']],
    ['sw', 'Swahili', ['sw', 'SW', 'sw-KE', 'sw-TZ,sw;q=0.9,en;q=0.8', 'fr, sw;q=0.2', '*;q=0.1, sw']],
    ['sw', 'English with less weight', ['en;q=0.8, sw;q=0.9', 'en;q=0.123,sw;q=0.124', 'sw;Q=0.9, en;Q=0.1']],
    ['sw', 'white space in weights', ['en ; q=0.1 , sw ; q=0.2']],
    ['sw', 'English refused', ['en;q=0, sw;q=0.001', 'en;q=often, sw']],
    ['sw', 'two regions', ['sw;q=0.1, en;q=0.5, sw-KE;q=0.7', 'sw-KE;q=0.7, en;q=0.5, sw;q=0.1']],
  ])('is %s when Accept-Language asks for %s', (language, _, headers) => {
    for (const header of headers) expect(preferredLanguage(header), header).toBe(language);
  });

  it('is English without the header', () => {
    expect(preferredLanguage(null)).toBe('en');
  });
});

describe('the catalogue of messages', () => {
  const swahili = new Map(Object.entries(messages.sw));
  const factsOf = (text: string) => text.match(/\d+|[a-z]+_[a-z_]+/g)?.toSorted() ?? [];

  it.each(Object.entries(messages.en))(
    'has %s in both languages, with the same numbers and fields',
    (key, en) => {
      const sw = swahili.get(key) ?? '';
      for (const text of [en, sw]) expect(text.trim()).not.toBe('');
      expect(en).not.toBe(sw);
      expect(factsOf(sw)).toEqual(factsOf(en));
    },
  );
});
