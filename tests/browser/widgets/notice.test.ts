import { describe, expect, it } from 'bun:test';
import { createNotice } from '../../../src/demo/studio/notice.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { button, openPage, shownText } from './page.ts';

function openNotice(languages?: readonly string[]) {
  const { document, text } = openPage(languages);
  const root = part(document, 'notice');
  return { root, text, alert: part(root, 'alert'), notice: createNotice(root, { text }) };
}

describe('the notice', () => {
  it('says what the gateway said, and below it what to do, in an alert', () => {
    const { root, alert, notice } = openNotice();
    expect(root.hidden).toBe(true);
    notice.show({ said: 'No credits.', advice: 'noCredits' });
    expect(root.hidden).toBe(false);
    expect(alert.getAttribute('role')).toBe('alert');
    expect(shownText(alert)).toBe('No credits. Choose a shorter length or a cheaper model.');
  });

  it('leaves out what was said before when it has nothing but advice', () => {
    const { alert, notice } = openNotice();
    notice.show({ said: 'No credits.', advice: 'noCredits' });
    notice.show({ advice: 'busy', values: { seconds: 5 } });
    expect(shownText(alert)).toBe('Try again in 5 seconds.');
  });

  it('goes away with its texts when it is dismissed, and can come again', () => {
    const { root, alert, notice } = openNotice();
    notice.show({ said: 'No credits.', advice: 'noCredits' });
    button(root, 'Dismiss').click();
    expect(root.hidden).toBe(true);
    expect(shownText(alert)).toBe('');
    notice.show({ advice: 'later' });
    expect(shownText(alert)).toBe('Try again in a moment.');
  });

  it('speaks the language that is chosen while it is shown', () => {
    const { alert, notice, text } = openNotice();
    notice.show({ advice: 'busy', values: { seconds: 5 } });
    text.choose('sw');
    expect(shownText(alert)).toBe('Jaribu tena baada ya sekunde 5.');
  });

  it('shows what passes only where nothing lasting is', () => {
    const { alert, notice } = openNotice();
    notice.showPassing({ advice: 'retrying' });
    expect(shownText(alert)).toBe('Trying again by itself.');
    notice.show({ advice: 'uncertain' });
    notice.showPassing({ advice: 'retrying' });
    expect(shownText(alert)).toStartWith('There was no clear answer');
    notice.clear();
    notice.showPassing({ advice: 'notReached' });
    expect(shownText(alert)).toStartWith('The gateway does not answer.');
  });

  it('takes back what has passed, and nothing else', () => {
    const { root, alert, notice } = openNotice();
    notice.showPassing({ advice: 'retrying' });
    notice.clearPassing();
    expect(root.hidden).toBe(true);
    notice.show({ advice: 'later' });
    notice.clearPassing();
    expect(shownText(alert)).toBe('Try again in a moment.');
  });
});
