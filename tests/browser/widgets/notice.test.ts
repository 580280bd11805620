import { describe, expect, it } from 'bun:test';
import { createNotice } from '../../../src/demo/studio/notice.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { openPart } from './page.ts';

function openNotice() {
  const { root, text, shown } = openPart('notice');
  return { root, text, notice: createNotice(root, { text }), alert: () => !root.hidden && shown('alert') };
}

describe('the notice', () => {
  it('shows the latest message in the language of the page until it is dismissed', () => {
    const { root, text, alert, notice } = openNotice();
    expect(alert()).toBe(false);
    notice.show({ said: 'No credits.', advice: 'noCredits' });
    expect(alert()).toBe('No credits. Choose a shorter length or a cheaper model.');
    notice.show({ advice: 'busy', values: { seconds: 5 } });
    expect(alert()).toBe('Try again in 5 seconds.');
    text.choose('sw');
    expect(alert()).toBe('Jaribu tena baada ya sekunde 5.');
    part(root, 'dismiss').click();
    expect([alert(), root.querySelector('[role=alert]')?.textContent.trim()]).toEqual([false, '']);
  });

  it('keeps a lasting message when a passing one is shown or cleared', () => {
    const { alert, notice } = openNotice();
    notice.showPassing({ advice: 'retrying' });
    expect(alert()).toBe('Trying again by itself.');
    notice.clearPassing();
    expect(alert()).toBe(false);
    notice.show({ advice: 'later' });
    notice.showPassing({ advice: 'retrying' });
    notice.clearPassing();
    expect(alert()).toBe('Try again in a moment.');
    notice.clear();
    notice.showPassing({ advice: 'notReached' });
    expect(alert()).toStartWith('The gateway does not answer.');
  });
});
