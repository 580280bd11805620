import { expect, it } from 'bun:test';
import { type Language, messages, preferredLanguage } from '../../src/gateway/http/messages.ts';

it.each<[language: Language, headers: (string | null)[]]>([
  ['en', [null, '', ',;,=;q', 'en-GB,en;q=0.9', 'fr', '*', 'swg', 'sw;q=0', 'sw;q=often, en']],
  ['en', ['sw;q=0.8, en;q=0.9', 'sw-KE;q=0.1, en-GB;q=0.2']],
  ['sw', ['SW', 'sw-KE', 'fr, sw;q=0.2', '*;q=0.1, sw', 'en;q=0, sw;q=0.001', 'en ; q=0.1 , sw ; Q=0.2']],
  ['sw', ['sw;q=0.1, en;q=0.5, sw-KE;q=0.7', 'sw-KE;q=0.7, en;q=0.5, sw;q=0.1']],
])('the language of a message is %s for an Accept-Language of %j', (language, headers) => {
  for (const header of headers) expect(preferredLanguage(header), `${header}`).toBe(language);
});

it('every message is there in both languages, with the same numbers and fields', () => {
  const factsOf = (text: string) => text.match(/\d+|[a-z]+_[a-z_]+/g)?.toSorted() ?? [];
  const swahili = new Map(Object.entries(messages.sw));
  for (const [key, en] of Object.entries(messages.en)) {
    const sw = swahili.get(key) ?? '';
    for (const text of [en, sw]) expect(text.trim()).not.toBe('');
    expect(en).not.toBe(sw);
    expect(factsOf(sw)).toEqual(factsOf(en));
  }
});
