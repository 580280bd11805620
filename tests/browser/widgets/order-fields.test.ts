import { describe, expect, it } from 'bun:test';
import { createLengthField, createPromptField } from '../../../src/demo/studio/order-fields.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { enter, openPart } from './page.ts';

const openPrompt = () => {
  const { root, text, shown } = openPart('order');
  return {
    root,
    shown,
    input: part<HTMLTextAreaElement>(root, 'prompt'),
    prompt: createPromptField(root, text),
  };
};

describe('the prompt', () => {
  it.each([
    [' \n\t ', '0', 'Describe the music first.'],
    [' rain\n on a roof ', '15', ''],
    [` ${'x'.repeat(4_100)} `, '4100', ''],
    [`${'🎵'.repeat(2_050)}x`, '4101', 'Use at most 4,100 characters.'],
  ])('is counted and judged as the gateway does (%#)', (value, count, expected) => {
    const { root, shown, input, prompt } = openPrompt();
    expect(shown('prompt-count')).toBe('0/4100');
    enter(input, value);
    expect(shown('prompt-count')).toBe(`${count}/4100`);
    expect(part(root, 'prompt-count').dataset['state']).toBe(Number(count) > 4_100 ? 'over' : 'within');
    expect(shown('prompt-problem')).toBe('');
    expect([prompt.check(), shown('prompt-problem')]).toEqual([expected === '', expected]);
    expect(input.getAttribute('aria-invalid')).toBe(String(expected !== ''));
    expect(prompt.value()).toBe(value.trim());
  });

  it('loses its problem as soon as it is right, and shows no other one before it is checked', () => {
    const { shown, input, prompt } = openPrompt();
    enter(input, 'x');
    enter(input, '');
    expect(shown('prompt-problem')).toBe('');
    prompt.check();
    enter(input, 'x'.repeat(4_101));
    expect(shown('prompt-problem')).toBe('Use at most 4,100 characters.');
    enter(input, 'rain');
    expect([shown('prompt-problem'), input.getAttribute('aria-invalid')]).toEqual(['', 'false']);
    expect(input.getAttribute('aria-describedby')).toBe('prompt-count prompt-problem');
  });
});

describe('the length', () => {
  it.each(['2', '3', '600', '601', '', '3.5'])('of %j seconds is judged, in either language', (value) => {
    const { root, text, shown } = openPart('order');
    const [input, length] = [part<HTMLInputElement>(root, 'length'), createLengthField(root, text)];
    const isRight = ['3', '600'].includes(value);
    expect([input.min, input.max, input.step, length.milliseconds()]).toEqual(['3', '600', '1', 30_000]);
    enter(input, value);
    expect([length.isRight(), length.check()]).toEqual([isRight, isRight]);
    expect(input.getAttribute('aria-invalid')).toBe(String(!isRight));
    expect(shown('length-problem')).toBe(isRight ? '' : 'Choose a whole number of seconds from 3 to 600.');
    expect(length.milliseconds()).toBe(Number(value) * 1_000);
    text.choose('sw');
    expect(shown('length-problem')).toStartWith(isRight ? '' : 'Chagua idadi kamili');
  });
});
