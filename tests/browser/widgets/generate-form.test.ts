import { describe, expect, it, mock } from 'bun:test';
import type { GenerationOrder } from '../../../src/client/generation.ts';
import { english } from '../../../src/demo/studio/english.ts';
import { createGenerateForm, type Outcome } from '../../../src/demo/studio/generate-form.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { enter, fire, openPart, settle } from './page.ts';

const MODELS = [
  { id: 'music-1', name: 'One', creditsPerSecond: 0.5 },
  { id: 'music-2', name: 'Two', creditsPerSecond: undefined },
];

/** The form with models and a prompt. The test ends each attempt to generate. */
function openForm() {
  const { document, root, text, shown } = openPart('order');
  const onGenerate = mock((_order: GenerationOrder, _key: string, _signal: AbortSignal) => outcome.promise);
  let outcome = Promise.withResolvers<Outcome>();
  const form = createGenerateForm(root, { text, onGenerate });
  const generate = part(root, 'generate');
  const prompt = part<HTMLTextAreaElement>(root, 'prompt');
  form.showModels(MODELS);
  enter(prompt, ' Rain ');
  const press = () => {
    outcome = Promise.withResolvers();
    generate.click();
    const [order, key = '', signal] = onGenerate.mock.lastCall ?? [];
    return { order, key, signal };
  };
  const end = (reached: Outcome) => {
    outcome.resolve(reached);
    return settle();
  };
  return {
    ...{ document, root, text, form, generate, prompt, shown, press, end },
    cancel: part(root, 'cancel'),
    length: part<HTMLInputElement>(root, 'length'),
    model: part<HTMLSelectElement>(root, 'model'),
    attempts: () => onGenerate.mock.calls.length,
    isReady: () => generate.getAttribute('aria-disabled') === 'false',
  };
}

describe('an order', () => {
  it('is what the form holds, with the chosen model after the models are loaded again', () => {
    const { root, form, length, model, press } = openForm();
    model.value = 'music-2';
    form.showModels([{ id: 'music-0', name: 'New', creditsPerSecond: 1 }, ...MODELS]);
    enter(length, '45');
    part(root, 'instrumental').click();
    expect(press().order).toEqual({
      model: 'music-2',
      prompt: 'Rain',
      music_length_ms: 45_000,
      force_instrumental: true,
      is_public: false,
    });
  });

  it('is not sent while a field is wrong; the first such field has the focus', () => {
    const { document, prompt, length, press, attempts } = openForm();
    enter(length, '601');
    press();
    expect(document.activeElement === length).toBe(true);
    enter(prompt, ' ');
    press();
    expect(document.activeElement === prompt).toBe(true);
    expect(attempts()).toBe(0);
  });

  it('is not sent without a model', () => {
    const { form, model, press, attempts, isReady } = openForm();
    for (const models of [undefined, []]) {
      form.showModels(models);
      press();
      expect([isReady(), attempts()]).toEqual([false, 0]);
    }
    expect(model.textContent).toBe('No music model');
    form.showModels(MODELS);
    expect(isReady()).toBe(true);
  });

  it('can be cancelled while it is in flight, and is not sent twice at the same time', async () => {
    const { document, length, generate, cancel, press, end, attempts, isReady } = openForm();
    expect(cancel.hidden).toBe(true);
    const { signal } = press();
    generate.click();
    expect([attempts(), isReady(), cancel.hidden, signal?.aborted]).toEqual([1, false, false, false]);
    cancel.focus();
    cancel.click();
    expect(signal?.aborted).toBe(true);
    await end('done');
    expect([isReady(), cancel.hidden, document.activeElement === generate]).toEqual([true, true, true]);
    expect(press().signal?.aborted).toBe(false);
    length.focus();
    await end('done');
    expect(document.activeElement === length).toBe(true);
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
    const first = press();
    await end('uncertain');
    part<HTMLInputElement>(root, 'public').click();
    const other = press();
    expect(other.order).toMatchObject({ prompt: 'Rain', is_public: true });
    await end('uncertain');
    part<HTMLInputElement>(root, 'public').click();
    expect(new Set([first.key, other.key, press().key]).size).toBe(3);
  });
});

describe('a suggestion', () => {
  it('fills in its field, as if a person had typed it', () => {
    const { document, root, prompt, length, shown, press } = openForm();
    length.focus();
    root.querySelector<HTMLElement>('[data-seconds="120"]')?.click();
    expect([length.value, shown('price')]).toEqual(['120', 'Costs 60 credits']);
    enter(prompt, '');
    press();
    expect(shown('prompt-problem')).toBe(NO_PROMPT);
    root.querySelector<HTMLElement>('[data-example]')?.click();
    expect([prompt.value, shown('prompt-problem')]).toEqual([english.exampleRain, '']);
    expect(document.activeElement === prompt).toBe(true);
    expect(press().order).toMatchObject({ prompt: english.exampleRain, music_length_ms: 120_000 });
  });
});

describe('the price', () => {
  it('follows length and model in whole credits, and is not shown where it is not known', () => {
    const { length, model, shown } = openForm();
    expect(shown('price')).toBe('Costs 15 credits');
    enter(length, '31');
    expect(shown('price')).toBe('Costs 16 credits');
    enter(length, '601');
    expect(shown('price')).toBe('');
    enter(length, '30');
    model.value = 'music-2';
    fire(model, 'input');
    expect(shown('price')).toBe('');
  });
});

const NO_PROMPT = 'Describe the music first.';
const LONG_PROMPT = 'Use at most 4,100 characters.';

describe('the prompt', () => {
  it.each([
    [' \n\t ', '0', NO_PROMPT],
    [' rain\n on a roof ', '15', ''],
    [` ${'x'.repeat(4_100)} `, '4100', ''],
    [`${'🎵'.repeat(2_050)}x`, '4101', LONG_PROMPT],
  ])('is counted and judged as the gateway does (%#)', (value, count, problem) => {
    const { root, shown, prompt, press, attempts } = openForm();
    enter(prompt, value);
    expect(shown('prompt-count')).toBe(`${count}/4100`);
    expect(part(root, 'prompt-count').dataset['state']).toBe(count === '4101' ? 'over' : 'within');
    expect(shown('prompt-problem')).toBe('');
    const { order } = press();
    expect([attempts(), shown('prompt-problem')]).toEqual([problem === '' ? 1 : 0, problem]);
    expect(prompt.getAttribute('aria-invalid')).toBe(String(problem !== ''));
    expect(order?.prompt).toBe(problem === '' ? value.trim() : undefined);
  });

  it('loses its problem as soon as it is right, and shows no other one before it is checked', () => {
    const { shown, prompt, press } = openForm();
    enter(prompt, '');
    expect(shown('prompt-problem')).toBe('');
    press();
    enter(prompt, 'x'.repeat(4_101));
    expect(shown('prompt-problem')).toBe(LONG_PROMPT);
    enter(prompt, 'rain');
    expect([shown('prompt-problem'), prompt.getAttribute('aria-invalid')]).toEqual(['', 'false']);
    expect(prompt.getAttribute('aria-describedby')).toBe('prompt-count prompt-problem');
  });
});

describe('the length', () => {
  it.each(['2', '3', '600', '601', '', '3.5'])('of %j seconds is judged, in either language', (value) => {
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
  });
});
