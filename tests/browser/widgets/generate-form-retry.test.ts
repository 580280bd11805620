import { describe, expect, it } from 'bun:test';
import { part } from '../../../src/demo/studio/parts.ts';
import { openFilled, press } from './order-form.ts';
import { enter, field } from './page.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function hint(root: HTMLElement): string {
  return part(root, 'attempt').textContent;
}

describe('the Idempotency-Key', () => {
  it('is a new one for each order, also for the same words again', async () => {
    const opened = openFilled();
    const first = press(opened);
    expect(first.key).toMatch(UUID);
    await first.end('done');
    expect(press(opened).key).not.toBe(first.key);
  });

  it.each(['refused', 'uncertain'] as const)('is kept when the same order was %s', async (outcome) => {
    const opened = openFilled();
    const first = press(opened);
    await first.end(outcome);
    const second = press(opened);
    expect(second.key).toBe(first.key);
    await second.end(outcome);
    expect(press(opened).key).toBe(first.key);
  });

  it('is a new one when the retry was done', async () => {
    const opened = openFilled();
    const first = press(opened);
    await first.end('uncertain');
    await press(opened).end('done');
    expect(press(opened).key).not.toBe(first.key);
  });

  it('is a new one when another order was made after the failure', async () => {
    const opened = openFilled();
    const first = press(opened);
    await first.end('uncertain');
    field(opened.root, 'Public').click();
    const other = press(opened);
    expect(other.order).toEqual({ ...first.order, is_public: true });
    expect(other.key).not.toBe(first.key);
    await other.end('uncertain');
    field(opened.root, 'Public').click();
    expect(press(opened).key).not.toBeOneOf([first.key, other.key]);
  });

  it('is kept when the order was changed and changed back before it was sent', async () => {
    const opened = openFilled();
    const first = press(opened);
    await first.end('refused');
    const prompt = field<HTMLTextAreaElement>(opened.root, 'Prompt');
    enter(prompt, 'Snow');
    enter(prompt, 'Rain');
    expect(press(opened).key).toBe(first.key);
  });
});

describe('the hint that the same order is not charged twice', () => {
  it('is there after an attempt whose outcome is not known, until the next one', async () => {
    const opened = openFilled();
    const first = press(opened);
    expect(hint(opened.root)).toBe('');
    await first.end('uncertain');
    expect(hint(opened.root)).toContain('not charged a second time');
    press(opened);
    expect(hint(opened.root)).toBe('');
  });

  it('is not there after a refusal or a success, which leave nothing in doubt', async () => {
    const opened = openFilled();
    await press(opened).end('refused');
    expect(hint(opened.root)).toBe('');
    await press(opened).end('done');
    expect(hint(opened.root)).toBe('');
  });
});
