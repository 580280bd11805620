import { describe, expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { fillOrder } from '../../../src/demo/studio/order-fields.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { readCreation } from '../../../src/demo/studio/records.ts';
import { openForm } from './order-form.ts';
import { enter, fire } from './page.ts';

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

describe('an earlier order', () => {
  it('fills in what is known of it', async () => {
    const { root, document, prompt, shown, press, end } = openForm();
    enter(prompt, '');
    press();
    const order = { prompt: 'Snow', model: 'music-2', music_length_ms: 7_000, force_instrumental: true };
    fillOrder(root, readCreation({ ...order, is_public: true }));
    expect(document.activeElement === prompt).toBe(true);
    expect([shown('prompt-problem'), shown('prompt-count')]).toEqual(['', '4/4100']);
    expect(press().order).toEqual({ ...order, is_public: true });
    await end('done');
    fillOrder(root, readCreation({ prompt: 'Hail', model: 'gone' }));
    const kept = { model: 'music-2', music_length_ms: 7_000 };
    const unset = { force_instrumental: false, is_public: false };
    expect(press().order).toEqual({ prompt: 'Hail', ...kept, ...unset });
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

describe('the credits that are left', () => {
  it('are set beside the price before the press, in the language of the page, when they are too few', () => {
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
    form.showBalance(3);
    // Only the upstream knows for sure, so the order can still be sent.
    press();
    expect(attempts()).toBe(1);
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
