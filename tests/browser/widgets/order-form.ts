/** The form of the page with a stand-in for what it orders from. */

import type { GenerationOrder } from '../../../src/client/generation.ts';
import { createGenerateForm, type Outcome } from '../../../src/demo/studio/generate-form.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { button, enter, field, openPage, settle } from './page.ts';

export const MODELS = [
  { id: 'music-1', name: 'One', creditsPerSecond: 0.5 },
  { id: 'music-2', name: 'Two', creditsPerSecond: undefined },
];

export interface Attempt {
  readonly order: GenerationOrder;
  readonly key: string;
  readonly signal: AbortSignal;
  end(outcome: Outcome): Promise<void>;
}

export function openForm() {
  const { document, text } = openPage();
  const root = part(document, 'order');
  const attempts: Attempt[] = [];
  const form = createGenerateForm(root, {
    text,
    onGenerate(order, key, signal) {
      const { promise, resolve } = Promise.withResolvers<Outcome>();
      const end = (outcome: Outcome) => {
        resolve(outcome);
        return settle();
      };
      attempts.push({ order, key, signal, end });
      return promise;
    },
  });
  return {
    document,
    root,
    form,
    attempts,
    generate: button(root, 'Generate'),
    cancel: button(root, 'Cancel'),
  };
}

/** The form with models, and a prompt in it. */
export function openFilled() {
  const opened = openForm();
  opened.form.showModels(MODELS);
  enter(field<HTMLTextAreaElement>(opened.root, 'Prompt'), ' Rain ');
  return opened;
}

/** Presses Generate, and gives the attempt that came of it. */
export function press({
  generate,
  attempts,
}: Pick<ReturnType<typeof openForm>, 'generate' | 'attempts'>): Attempt {
  const before = attempts.length;
  generate.click();
  const attempt = attempts[before];
  if (!attempt) throw new Error('Generate did nothing');
  return attempt;
}
