import { describe, expect, it } from 'bun:test';
import { part } from '../../../src/demo/studio/parts.ts';
import { MODELS, openFilled, openForm, press } from './order-form.ts';
import { enter, field, fire, shownText } from './page.ts';

describe('an order', () => {
  it('is what the form holds', () => {
    const opened = openFilled();
    enter(field(opened.root, 'Length'), '45');
    field(opened.root, 'Instrumental').click();
    expect(press(opened).order).toEqual({
      model: 'music-1',
      prompt: 'Rain',
      music_length_ms: 45_000,
      force_instrumental: true,
      is_public: false,
    });
  });

  it('is for the model that was chosen, also after the models were loaded again', () => {
    const opened = openFilled();
    field<HTMLSelectElement>(opened.root, 'Model').value = 'music-2';
    opened.form.showModels([{ id: 'music-0', name: 'New', creditsPerSecond: 1 }, ...MODELS]);
    expect(press(opened).order.model).toBe('music-2');
  });

  it('is not sent as long as something in it is wrong, which then has the focus', () => {
    const { document, root, generate, attempts } = openFilled();
    const [prompt, length] = [field<HTMLTextAreaElement>(root, 'Prompt'), field(root, 'Length')];
    enter(length, '601');
    generate.click();
    expect(document.activeElement === length).toBe(true);
    enter(prompt, ' ');
    generate.click();
    expect(document.activeElement === prompt).toBe(true);
    expect(shownText(root)).toContain('Describe the music first.');
    expect(shownText(root)).toContain('Choose a whole number of seconds from 3 to 600.');
    expect(attempts).toEqual([]);
  });

  it('is not sent without a model', () => {
    const { root, form, generate, attempts } = openForm();
    enter(field<HTMLTextAreaElement>(root, 'Prompt'), 'Rain');
    for (const models of [undefined, []]) {
      form.showModels(models);
      generate.click();
      expect(generate.getAttribute('aria-disabled')).toBe('true');
    }
    expect(attempts).toEqual([]);
    expect(field<HTMLSelectElement>(root, 'Model').textContent).toBe('No music model');
    form.showModels(MODELS);
    expect(generate.getAttribute('aria-disabled')).toBe('false');
  });

  it('is not sent twice while it is under way', async () => {
    const opened = openFilled();
    const attempt = press(opened);
    expect(opened.generate.getAttribute('aria-disabled')).toBe('true');
    opened.generate.click();
    fire(part(opened.root, 'form'), 'submit');
    expect(opened.attempts).toHaveLength(1);
    await attempt.end('done');
    expect(opened.generate.getAttribute('aria-disabled')).toBe('false');
    press(opened);
  });
});

describe('Cancel', () => {
  it('is there as long as an order is under way, and ends the wait for it', async () => {
    const opened = openFilled();
    expect(opened.cancel.hidden).toBe(true);
    const attempt = press(opened);
    expect(opened.cancel.hidden).toBe(false);
    expect(attempt.signal.aborted).toBe(false);
    opened.cancel.click();
    expect(attempt.signal.aborted).toBe(true);
    await attempt.end('done');
    expect(opened.cancel.hidden).toBe(true);
  });

  it('gives the focus to Generate when it goes away, and takes it from nothing else', async () => {
    const opened = openFilled();
    const first = press(opened);
    opened.cancel.focus();
    await first.end('done');
    expect(opened.document.activeElement === opened.generate).toBe(true);
    const second = press(opened);
    const length = field(opened.root, 'Length');
    length.focus();
    await second.end('done');
    expect(opened.document.activeElement === length).toBe(true);
  });

  it('does not reach the next order', async () => {
    const opened = openFilled();
    const first = press(opened);
    opened.cancel.click();
    await first.end('done');
    expect(press(opened).signal.aborted).toBe(false);
  });
});

describe('the price', () => {
  const price = (root: HTMLElement) => part(root, 'price').textContent;

  it('follows length and model, in whole credits', () => {
    const { root } = openFilled();
    expect(price(root)).toBe('Costs 15 credits');
    enter(field(root, 'Length'), '31');
    expect(price(root)).toBe('Costs 16 credits');
    const model = field<HTMLSelectElement>(root, 'Model');
    model.value = 'music-2';
    fire(model, 'input');
    expect(price(root)).toBe('');
  });

  it('is not told for a length that cannot be ordered', () => {
    const { root } = openFilled();
    enter(field(root, 'Length'), '601');
    expect(price(root)).toBe('');
  });
});
