/** The Studio's page without its script. */

import { onTestFinished } from 'bun:test';
import { Window as HappyWindow } from 'happy-dom';
import { createText } from '../../../src/demo/studio/text.ts';

const MARKUP = await Bun.file(new URL('../../../src/demo/studio/index.html', import.meta.url)).text();

export function openPage() {
  const happyWindow = new HappyWindow({
    url: 'https://studio.test/',
    settings: { disableCSSFileLoading: true, handleDisabledFileLoadingAsSuccess: true },
  });
  onTestFinished(() => happyWindow.happyDOM.close());
  happyWindow.document.write(MARKUP);
  // happy-dom declares classes of its own, which are no part of the compiler's library for pages.
  const window = happyWindow as unknown as Window & typeof globalThis;
  const { document, localStorage: storage } = window;
  return { window, document, storage, text: createText({ document, languages: ['en-GB'], storage }) };
}
