/** The page of the Studio in happy-dom without its script, for the tests of single widgets. */

import { onTestFinished } from 'bun:test';
import { Window as HappyWindow } from 'happy-dom';
import { part } from '../../../src/demo/studio/parts.ts';
import { createText } from '../../../src/demo/studio/text.ts';

const MARKUP = await Bun.file(new URL('../../../src/demo/studio/index.html', import.meta.url)).text();

/**
 * Opens the page until the test has ended, with what the tests of one of its parts need. `shown` is the text of a part
 * within that part.
 */
export function openPart(name: string) {
  const window = new HappyWindow({
    url: 'https://studio.test/',
    settings: { disableCSSFileLoading: true, handleDisabledFileLoadingAsSuccess: true },
  });
  onTestFinished(() => window.happyDOM.close());
  window.document.write(MARKUP);
  // happy-dom declares classes of its own, which are no part of the compiler's library for pages.
  const document = window.document as unknown as Document;
  const storage = viewOf(document).localStorage;
  const root = part(document, name);
  const text = createText({ document, languages: ['en-GB'], storage });
  return { document, storage, root, text, shown: (inner: string) => shownText(part(root, inner)) };
}

export function viewOf(document: Document): Window & typeof globalThis {
  if (!document.defaultView) throw new Error('The document has no window');
  return document.defaultView;
}

export function fire(target: Element | Document, type: string): void {
  const view = viewOf('defaultView' in target ? target : target.ownerDocument);
  target.dispatchEvent(new view.Event(type, { bubbles: true }));
}

/** The text outside hidden elements, whatever the styles say. */
function shownText(element: Element): string {
  if (element.hasAttribute('hidden')) return '';
  const copy = element.ownerDocument.importNode(element, true);
  for (const hidden of copy.querySelectorAll('[hidden]')) hidden.remove();
  return copy.textContent.replace(/\s+/g, ' ').trim();
}
