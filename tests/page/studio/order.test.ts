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
  const length = part<HTMLInputElement>(root, 'length');
  form.showModels(MODELS);
  enter(prompt, ' Rain ');
  return {
    ...{ root, text, form, prompt, length, shown },
    model: part<HTMLSelectElement>(root, 'model'),
    attempts: () => onGenerate.mock.calls.length,
    keys: () => onGenerate.mock.calls.map(([, key]) => key),
    isReady: () => generate.getAttribute('aria-disabled') === 'false',
    focused: () => document.activeElement?.getAttribute('data-part'),
    press() {
      outcome = Promise.withResolvers();
      generate.click();
      const [order, key, accept = () => {}] = onGenerate.mock.lastCall ?? [];
      return { order, key, accept };
    },
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
    const { order, key } = press();
    const fields = { model: 'music-2', prompt: 'Rain', music_length_ms: 45_000 };
    expect(order).toEqual({ ...fields, force_instrumental: true, is_public: false });
    expect(key).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  });

  it('is not sent while a field is wrong, whose first has the focus, nor without a model', () => {
    const { form, model, prompt, length, press, attempts, isReady, focused } = openForm();
    for (const [field, value] of [
      [length, '601'],
      [prompt, ' '],
    ] as const) {
      enter(field, value);
      press();
      expect(focused()).toBe(field.dataset['part'] ?? '');
    }
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
});

describe('the attempts to order', () => {
  /** Goes through steps: new prompts, what becomes of the latest attempt, and others. Names each key by a letter. */
  async function attempt(steps: string) {
    const { root, form, prompt, press, end, keys, isReady, shown } = openForm();
    let accept = () => {};
    const actions: Record<string, () => unknown> = {
      press: () => ({ accept } = press()),
      accept: () => accept(),
      public: () => part(root, 'public').click(),
      done: () => end('done'),
      refused: () => end('refused'),
      uncertain: () => end('uncertain'),
      leave() {
        form.empty();
        form.showModels(MODELS);
        enter(prompt, 'Rain');
      },
    };
    for (const step of steps.split(' ')) await (actions[step] ?? (() => enter(prompt, step)))();
    const names = keys().map((key) => 'ABCD'[[...new Set(keys())].indexOf(key)]);
    return [names.join(' '), isReady(), shown('attempt')];
  }
  const SAME = english.sameAttempt;

  it.each([
    ['a double click sends one', 'press press', 'A', false, ''],
    ['another order is sent at once', 'press Snow', 'A', true, ''],
    ['each order is sent once', 'press Snow press Rain press', 'A B', false, ''],
    ['it is sent again once it is accepted', 'press accept press', 'A B', false, ''],
    ['it is sent again under a new key when it is done', 'press done press', 'A B', false, ''],
    ['a refused order keeps its key', 'press refused Snow Rain press refused press', 'A A A', false, ''],
    ['nothing is said of a refused one', 'press refused', 'A', true, ''],
    ['an uncertain order keeps its key', 'press uncertain Snow Rain press', 'A A', false, ''],
    ['it is said of an uncertain one', 'press uncertain', 'A', true, SAME],
    ['an uncertain order stays so when it is refused', 'press uncertain press refused', 'A A', true, SAME],
    ['a repeated one that is done is over', 'press uncertain press done press', 'A A B', false, ''],
    ['another order has another key', 'press uncertain public press', 'A B', false, ''],
    ['and the first after that', 'press uncertain Snow press uncertain Rain press', 'A B C', false, ''],
    ['another account may order the same', 'press leave', 'A', true, ''],
    ['another account has other keys', 'press leave uncertain press', 'A B', false, ''],
  ])('%s: %s', async (_, steps, keys, isReady, hint) => {
    expect(await attempt(steps)).toEqual([keys, isReady, hint]);
  });
});

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
    [' \n\t ', '0', 'Describe the music first.'],
    [' rain\n on a roof ', '15', ''],
    [` ${'x'.repeat(4_100)} `, '4100', ''],
    [`${'🎵'.repeat(2_050)}x`, '4101', 'Use at most 4,100 characters.'],
  ])('count and judge the prompt as the gateway does, once it is sent (%#)', (value, count, problem) => {
    const { root, shown, prompt, press } = openForm();
    enter(prompt, value);
    expect([shown('prompt-count'), shown('prompt-problem')]).toEqual([`${count}/4100`, '']);
    expect(part(root, 'prompt-count').dataset['state']).toBe(count === '4101' ? 'over' : 'within');
    expect(press().order?.prompt).toBe(problem ? undefined : value.trim());
    expect([shown('prompt-problem'), prompt.getAttribute('aria-invalid')]).toEqual([
      problem,
      String(problem !== ''),
    ]);
    enter(prompt, 'rain');
    expect([shown('prompt-problem'), prompt.getAttribute('aria-invalid')]).toEqual(['', 'false']);
  });

  it.each(['2', '3', '600', '601', '', '3.5'])(
    'judge a length of %j seconds, in either language',
    (value) => {
      const { text, shown, length, press } = openForm();
      expect([length.min, length.max, length.step, length.value]).toEqual(['3', '600', '1', '30']);
      const isRight = ['3', '600'].includes(value);
      enter(length, value);
      expect(press().order?.music_length_ms).toBe(isRight ? Number(value) * 1_000 : undefined);
      expect(length.getAttribute('aria-invalid')).toBe(String(!isRight));
      expect(shown('length-problem')).toBe(isRight ? '' : 'Choose a whole number of seconds from 3 to 600.');
      text.choose('sw');
      expect(shown('length-problem')).toStartWith(isRight ? '' : 'Chagua idadi kamili');
    },
  );
});

describe('the price', () => {
  it('is in whole credits, beside those that are left when they are too few, and hidden where it is not known', () => {
    const { text, form, length, model, shown, press, attempts } = openForm();
    form.showBalance(15);
    const prices = ['601', '30', '31'].map((seconds) => {
      enter(length, seconds);
      return shown('price');
    });
    expect(prices.slice(0, 2)).toEqual(['', 'Costs 15 credits']);
    expect(prices[2]).toStartWith('Costs 16 credits, and you have 15:');
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
    model.value = 'music-2';
    fire(model, 'input');
    expect(shown('price')).toBe('');
  });
});
