import { describe, expect, it, mock } from 'bun:test';
import type { GenerationOrder } from '../../../src/client/generation-order.ts';
import { english } from '../../../src/demo/studio/english.ts';
import { createGenerateForm, type Outcome } from '../../../src/demo/studio/generate-form.ts';
import { fillOrder } from '../../../src/demo/studio/order-fields.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { readCreation } from '../../../src/demo/studio/records.ts';
import { settle } from '../fake-time.ts';
import { enter, fire, openPart } from './page.ts';

const MODELS = [
  { id: 'music-1', name: 'One', creditsPerSecond: 0.5 },
  { id: 'music-2', name: 'Two', creditsPerSecond: undefined },
];

/** The form with models and a prompt. The test ends each attempt to generate. */
function openForm() {
  const { document, root, text, shown } = openPart('order');
  let outcome = Promise.withResolvers<Outcome>();
  const onGenerate = mock(
    (_order: GenerationOrder, _key: string, _onAccepted: () => void) => outcome.promise,
  );
  const form = createGenerateForm(root, { text, onGenerate });
  const generate = part(root, 'generate');
  const prompt = part<HTMLTextAreaElement>(root, 'prompt');
  form.showModels(MODELS);
  enter(prompt, ' Rain ');
  return {
    ...{ root, text, form, generate, prompt, shown },
    length: part<HTMLInputElement>(root, 'length'),
    model: part<HTMLSelectElement>(root, 'model'),
    attempts: () => onGenerate.mock.calls.length,
    isReady: () => generate.getAttribute('aria-disabled') === 'false',
    focused: () => document.activeElement?.getAttribute('data-part'),
    press() {
      outcome = Promise.withResolvers();
      generate.click();
      const [order, key = '', accept = () => {}] = onGenerate.mock.lastCall ?? [];
      return { order, key, accept };
    },
    /** Ends the latest attempt. */
    end(reached: Outcome) {
      outcome.resolve(reached);
      return settle();
    },
  };
}

describe('an order', () => {
  it('is what the form holds, with the chosen model after the models are loaded again', () => {
    const { root, form, length, model, press } = openForm();
    model.value = 'music-2';
    form.showModels([{ id: 'music-0', name: 'New', creditsPerSecond: 1 }, ...MODELS]);
    enter(length, '45');
    part(root, 'instrumental').click();
    const fields = { model: 'music-2', prompt: 'Rain', music_length_ms: 45_000 };
    expect(press().order).toEqual({ ...fields, force_instrumental: true, is_public: false });
  });

  it('is not sent while a field is wrong, whose first has the focus, nor without a model', () => {
    const { form, model, prompt, length, press, attempts, isReady, focused } = openForm();
    enter(length, '601');
    press();
    expect(focused()).toBe('length');
    enter(prompt, ' ');
    press();
    expect(focused()).toBe('prompt');
    enter(length, '30');
    enter(prompt, 'Rain');
    for (const models of [undefined, []]) {
      form.showModels(models);
      press();
      expect([isReady(), attempts()]).toEqual([false, 0]);
    }
    expect(model.textContent).toBe('No music model');
    form.showModels(MODELS);
    expect(isReady()).toBe(true);
  });

  it('is not sent twice by a double click, but again once it is accepted, and another one at once', async () => {
    const { generate, prompt, press, end, attempts, isReady } = openForm();
    const { key, accept } = press();
    generate.click();
    expect([attempts(), isReady()]).toEqual([1, false]);
    enter(prompt, 'Snow');
    expect(isReady()).toBe(true);
    const other = press();
    expect([attempts(), isReady()]).toEqual([2, false]);
    enter(prompt, 'Rain');
    expect(isReady()).toBe(false);
    accept();
    expect(isReady()).toBe(true);
    expect(press().key).not.toBeOneOf([key, other.key]);
    await end('done');
    expect([attempts(), isReady()]).toEqual([3, true]);
  });

  it('of an account that is gone neither blocks the form nor leaves its key there', async () => {
    const { form, prompt, press, end, isReady } = openForm();
    const first = press();
    form.empty();
    form.showModels(MODELS);
    enter(prompt, ' Rain ');
    expect(isReady()).toBe(true);
    await end('uncertain');
    expect(press().key).not.toBe(first.key);
  });
});

describe('the Idempotency-Key', () => {
  it.each<[outcome: Outcome, isKept: boolean, hint: string]>([
    ['done', false, ''],
    ['refused', true, ''],
    ['uncertain', true, english.sameAttempt],
  ])('of the same order after it was %s is kept: %p', async (outcome, isKept, hint) => {
    const { press, end, prompt, shown } = openForm();
    const first = press();
    expect(first.key).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    await end(outcome);
    expect(shown('attempt')).toBe(hint);
    for (const words of ['Snow', 'Rain']) enter(prompt, words);
    const second = press();
    expect(shown('attempt')).toBe('');
    await end(outcome);
    const third = press();
    expect([second.key === first.key, third.key === second.key]).toEqual([isKept, isKept]);
    await end('done');
    expect(press().key).not.toBeOneOf([first.key, third.key]);
  });

  it('is a new one for another order, and for the first one after that', async () => {
    const { root, press, end } = openForm();
    const keys = new Set<string>();
    for (const isPublic of [false, true, false]) {
      const { order, key } = press();
      expect(order?.is_public).toBe(isPublic);
      keys.add(key);
      await end('uncertain');
      part<HTMLInputElement>(root, 'public').click();
    }
    expect(keys.size).toBe(3);
  });
});

const NO_PROMPT = 'Describe the music first.';
const LONG_PROMPT = 'Use at most 4,100 characters.';

describe('the fields of an order', () => {
  it('are filled in by suggestions, as if a person had typed', () => {
    const { root, prompt, length, shown, press, focused } = openForm();
    root.querySelector<HTMLElement>('[data-seconds="120"]')?.click();
    expect([length.value, shown('price')]).toEqual(['120', 'Costs 60 credits']);
    enter(prompt, '');
    press();
    root.querySelector<HTMLElement>('[data-example]')?.click();
    expect([prompt.value, shown('prompt-problem'), focused()]).toEqual([english.exampleRain, '', 'prompt']);
  });

  it('are filled in with what is known of an earlier order', async () => {
    const { root, prompt, shown, press, end, focused } = openForm();
    enter(prompt, '');
    press();
    const order = { prompt: 'Snow', model: 'music-2', music_length_ms: 7_000, force_instrumental: true };
    fillOrder(root, readCreation({ ...order, is_public: true }));
    expect([shown('prompt-problem'), shown('prompt-count'), focused()]).toEqual(['', '4/4100', 'prompt']);
    expect(press().order).toEqual({ ...order, is_public: true });
    await end('done');
    fillOrder(root, readCreation({ prompt: 'Hail', model: 'gone' }));
    const unset = { prompt: 'Hail', force_instrumental: false, is_public: false };
    expect(press().order).toEqual({ ...order, ...unset });
  });

  it.each([
    [' \n\t ', '0', NO_PROMPT],
    [' rain\n on a roof ', '15', ''],
    [` ${'x'.repeat(4_100)} `, '4100', ''],
    [`${'🎵'.repeat(2_050)}x`, '4101', LONG_PROMPT],
  ])('count and judge the prompt as the gateway does, once it is sent (%#)', (value, count, problem) => {
    const { root, shown, prompt, press, attempts } = openForm();
    enter(prompt, value);
    expect([shown('prompt-count'), shown('prompt-problem')]).toEqual([`${count}/4100`, '']);
    expect(part(root, 'prompt-count').dataset['state']).toBe(count === '4101' ? 'over' : 'within');
    const { order } = press();
    expect([attempts(), shown('prompt-problem')]).toEqual([problem === '' ? 1 : 0, problem]);
    expect(prompt.getAttribute('aria-invalid')).toBe(String(problem !== ''));
    expect(order?.prompt).toBe(problem === '' ? value.trim() : undefined);
    enter(prompt, 'rain');
    expect([shown('prompt-problem'), prompt.getAttribute('aria-invalid')]).toEqual(['', 'false']);
  });

  it.each(['2', '3', '600', '601', '', '3.5'])(
    'judge a length of %j seconds, in either language',
    (value) => {
      const { text, shown, length, press } = openForm();
      expect([length.min, length.max, length.step, length.value]).toEqual(['3', '600', '1', '30']);
      enter(length, value);
      const { order } = press();
      const isRight = ['3', '600'].includes(value);
      expect(order?.music_length_ms).toBe(isRight ? Number(value) * 1_000 : undefined);
      expect(length.getAttribute('aria-invalid')).toBe(String(!isRight));
      expect(shown('length-problem')).toBe(isRight ? '' : 'Choose a whole number of seconds from 3 to 600.');
      text.choose('sw');
      expect(shown('length-problem')).toStartWith(isRight ? '' : 'Chagua idadi kamili');
    },
  );
});

describe('the price', () => {
  it('follows length and model in whole credits, and is not shown where it is not known', () => {
    const { length, model, shown } = openForm();
    const prices = ['30', '31', '601', '30'].map((seconds) => {
      enter(length, seconds);
      return shown('price');
    });
    expect(prices).toEqual(['Costs 15 credits', 'Costs 16 credits', '', 'Costs 15 credits']);
    model.value = 'music-2';
    fire(model, 'input');
    expect(shown('price')).toBe('');
  });

  it('is set beside the credits that are left when they are too few, which does not prevent the order', () => {
    const { text, form, length, shown, press, attempts } = openForm();
    form.showBalance(15);
    expect(shown('price')).toBe('Costs 15 credits');
    enter(length, '31');
    expect(shown('price')).toStartWith('Costs 16 credits, and you have 15:');
    text.choose('sw');
    expect(shown('price')).toStartWith('Gharama: salio 16, nawe una 15:');
    form.showBalance(16);
    expect(shown('price')).toBe('Gharama: salio 16');
    form.showBalance(0);
    // No length and no model would help.
    expect(shown('price')).toBe('Gharama: salio 16, nawe huna salio lililobaki.');
    // Only the upstream knows for sure.
    press();
    expect(attempts()).toBe(1);
  });
});
