import { describe, expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import type { Outcome } from '../../../src/demo/studio/generate-form.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { MODELS, openForm } from './order-form.ts';
import { enter } from './page.ts';

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
    expect(attempts()).toBe(3);
    await end('done');
    expect(isReady()).toBe(true);
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
