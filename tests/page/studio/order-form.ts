/** The form that orders a track, for the tests of its parts. */

import { mock } from 'bun:test';
import type { GenerationOrder } from '../../../src/client/generation-order.ts';
import { createGenerateForm, type Outcome } from '../../../src/demo/studio/generate-form.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { enter, openPart, settle } from './page.ts';

export const MODELS = [
  { id: 'music-1', name: 'One', creditsPerSecond: 0.5 },
  { id: 'music-2', name: 'Two', creditsPerSecond: undefined },
];

/** The form with models and a prompt. The test ends each attempt to generate. */
export function openForm() {
  const { document, root, text, shown } = openPart('order');
  const onGenerate = mock(
    (_order: GenerationOrder, _key: string, _onAccepted: () => void) => outcome.promise,
  );
  let outcome = Promise.withResolvers<Outcome>();
  const form = createGenerateForm(root, { text, onGenerate });
  const generate = part(root, 'generate');
  const prompt = part<HTMLTextAreaElement>(root, 'prompt');
  form.showModels(MODELS);
  enter(prompt, ' Rain ');
  const press = () => {
    outcome = Promise.withResolvers();
    generate.click();
    const [order, key = '', accept = () => {}] = onGenerate.mock.lastCall ?? [];
    return { order, key, accept };
  };
  /** Ends the latest attempt. */
  const end = (reached: Outcome) => {
    outcome.resolve(reached);
    return settle();
  };
  return {
    ...{ document, root, text, form, generate, prompt, shown, press, end },
    length: part<HTMLInputElement>(root, 'length'),
    model: part<HTMLSelectElement>(root, 'model'),
    attempts: () => onGenerate.mock.calls.length,
    isReady: () => generate.getAttribute('aria-disabled') === 'false',
  };
}
