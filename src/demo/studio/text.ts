/** Writes the page's texts in English or Swahili, and rewrites them all when the language changes. */

import { english, type TextKey } from './english.ts';
import { formatText, type Values } from './formats.ts';
import { swahili } from './swahili.ts';

const TEXTS = { en: english, sw: swahili };
const STORAGE_KEY = 'studio.language';

/** The attribute that each source attribute fills; null fills the text of the element. */
const TARGETS = {
  'data-text': null,
  'data-label': 'aria-label',
  'data-placeholder': 'placeholder',
  'data-tooltip': 'title',
} as const;

export type Language = keyof typeof TEXTS;

export interface Text {
  readonly language: Language;
  /** Switches to another language, and remembers it. */
  choose(language: Language): void;
  /** Fills an element now and after each change of language. Without a key, empties it. */
  write(element: Element, key: TextKey | undefined, values?: Values): void;
  /** The text alone, for what is not in the page. */
  say(key: TextKey): string;
  /** Fills every element below `root` that has one of the source attributes. */
  fill(root: ParentNode): void;
}

export interface TextOptions {
  readonly document: Document;
  /** In order of preference, as in `navigator.languages`. */
  readonly languages: readonly string[];
  readonly storage: Pick<Storage, 'getItem' | 'setItem'>;
}

export function createText({ document, languages, storage }: TextOptions): Text {
  const valuesOf = new WeakMap<Element, Values>();
  let language = initialLanguage(languages, storage.getItem(STORAGE_KEY));

  function fillElement(element: Element): void {
    for (const [source, target] of Object.entries(TARGETS)) {
      const key = element.getAttribute(source);
      if (key === null || !isTextKey(key)) continue;
      const text = formatText(TEXTS[language][key], valuesOf.get(element) ?? {}, language);
      if (target === null) element.textContent = text;
      else element.setAttribute(target, text);
    }
  }

  function fill(root: ParentNode): void {
    const selector = Object.keys(TARGETS).map((name) => `[${name}]`);
    for (const element of root.querySelectorAll(selector.join())) fillElement(element);
  }

  function speak(): void {
    document.documentElement.lang = language;
    fill(document);
  }

  speak();
  return {
    get language() {
      return language;
    },
    choose(chosen) {
      language = chosen;
      storage.setItem(STORAGE_KEY, chosen);
      speak();
    },
    say: (key) => formatText(TEXTS[language][key], {}, language),
    write(element, key, values = {}) {
      if (key === undefined) {
        element.removeAttribute('data-text');
        element.textContent = '';
        return;
      }
      element.setAttribute('data-text', key);
      valuesOf.set(element, values);
      fillElement(element);
    },
    fill,
  };
}

export function connectLanguageSelect(select: HTMLSelectElement, text: Text): void {
  select.value = text.language;
  select.addEventListener('change', () => {
    if (isLanguage(select.value)) text.choose(select.value);
  });
}

function initialLanguage(languages: readonly string[], remembered: string | null): Language {
  const wanted = [remembered ?? '', ...languages].map((tag) => tag.split('-')[0] ?? '');
  return wanted.find(isLanguage) ?? 'en';
}

function isLanguage(value: string): value is Language {
  return Object.hasOwn(TEXTS, value);
}

function isTextKey(key: string): key is TextKey {
  return Object.hasOwn(english, key);
}
