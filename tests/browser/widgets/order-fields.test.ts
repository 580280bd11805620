import { describe, expect, it } from 'bun:test';
import { createLengthField, createPromptField } from '../../../src/demo/studio/order-fields.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { enter, field, openPage } from './page.ts';

function openPrompt() {
  const { document, text } = openPage();
  const root = part(document, 'order');
  const input = field<HTMLTextAreaElement>(root, 'Prompt');
  return { text, input, ...promptParts(root), prompt: createPromptField(root, text) };
}

function promptParts(root: HTMLElement) {
  return { counter: part(root, 'prompt-count'), problem: part(root, 'prompt-problem') };
}

function openLength() {
  const { document, text } = openPage();
  const root = part(document, 'order');
  const input = field(root, 'Length');
  return { text, input, problem: part(root, 'length-problem'), length: createLengthField(root, text) };
}

describe('the prompt', () => {
  it.each([
    ['', false],
    [' \n\t ', false],
    ['x', true],
    ['x'.repeat(4_100), true],
    [` ${'x'.repeat(4_100)} `, true],
    ['x'.repeat(4_101), false],
    ['🎵'.repeat(2_050), true],
    [`${'🎵'.repeat(2_050)}x`, false],
  ])('is right or not as the gateway counts it (%#)', (value, isRight) => {
    const { input, problem, prompt } = openPrompt();
    enter(input, value);
    expect(prompt.check()).toBe(isRight);
    expect(input.getAttribute('aria-invalid')).toBe(String(!isRight));
    expect(problem.textContent === '').toBe(isRight);
  });

  it('is sent without the space around it', () => {
    const { input, prompt } = openPrompt();
    enter(input, '  rain on\n a roof \n');
    expect(prompt.value()).toBe('rain on\n a roof');
  });

  it('is counted from the start and with every letter, without the space around it', () => {
    const { input, counter } = openPrompt();
    expect(counter.textContent).toBe('0/4100');
    enter(input, ' rain ');
    expect(counter.textContent).toBe('4/4100');
  });

  it('marks its counter from the first letter too many', () => {
    const { input, counter } = openPrompt();
    enter(input, 'x'.repeat(4_100));
    expect(counter.dataset['state']).toBe('within');
    enter(input, 'x'.repeat(4_101));
    expect(counter.textContent).toBe('4101/4100');
    expect(counter.dataset['state']).toBe('over');
  });

  it('is described by its counter and by what is wrong with it', () => {
    const { input, counter, problem } = openPrompt();
    const described = input.getAttribute('aria-describedby')?.split(' ') ?? [];
    expect(described).toEqual(expect.arrayContaining([counter.id, problem.id]));
  });

  it('says what is wrong only when it is asked, and as soon as it is mended no more', () => {
    const { input, problem, prompt } = openPrompt();
    enter(input, 'x');
    enter(input, '');
    expect(problem.textContent).toBe('');
    prompt.check();
    expect(problem.textContent).toBe('Describe the music first.');
    enter(input, 'x'.repeat(4_101));
    expect(problem.textContent).toBe('Use at most 4,100 characters.');
    enter(input, 'rain');
    expect(problem.textContent).toBe('');
    expect(input.getAttribute('aria-invalid')).toBe('false');
  });
});

describe('the length', () => {
  it.each([
    ['2', false],
    ['3', true],
    ['600', true],
    ['601', false],
    ['', false],
    ['-30', false],
    ['3.5', false],
    ['599.5', false],
    ['30', true],
    ['0', false],
  ])('of %j seconds is right: %p', (value, isRight) => {
    const { input, length, problem } = openLength();
    enter(input, value);
    expect(length.isRight()).toBe(isRight);
    expect(length.check()).toBe(isRight);
    expect(input.getAttribute('aria-invalid')).toBe(String(!isRight));
    expect(problem.textContent).toBe(isRight ? '' : 'Choose a whole number of seconds from 3 to 600.');
  });

  it('is half a minute at first, and has its limits in the field as well', () => {
    const { input, length } = openLength();
    expect(length.milliseconds()).toBe(30_000);
    expect([input.min, input.max, input.step]).toEqual(['3', '600', '1']);
  });

  it('is told in milliseconds', () => {
    const { input, length } = openLength();
    enter(input, '3');
    expect(length.milliseconds()).toBe(3_000);
  });

  it('says what is wrong in the language of the page, which may change meanwhile', () => {
    const { input, length, problem, text } = openLength();
    enter(input, '2');
    length.check();
    text.choose('sw');
    expect(problem.textContent).toStartWith('Chagua idadi kamili');
  });

  it('can be given the focus', () => {
    const { input, length } = openLength();
    length.focus();
    expect(input.ownerDocument.activeElement === input).toBe(true);
  });
});
