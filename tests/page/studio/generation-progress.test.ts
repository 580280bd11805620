import { describe, expect, it, mock } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { createGenerationProgress } from '../../../src/demo/studio/generation-progress.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { fakeTime } from '../fake-time.ts';
import { openPart, shownText } from './page.ts';

const NOT_KNOWN = { elapsedMs: 0, firstByteMs: undefined, totalBytes: undefined };
const WAITING = { ...NOT_KNOWN, state: 'waiting', bytes: 0 } as const;
const ARRIVING = { ...NOT_KNOWN, state: 'arriving', firstByteMs: 1_230.4 } as const;

function openProgress() {
  const advance = fakeTime();
  const { document, root, text } = openPart('progress');
  const lines = () => [...part(root, 'lines').children];
  const shown = (name: string, index = 0) => shownText(part(lines()[index] ?? root, name));
  return {
    ...{ document, advance, root, lines, shown },
    figures: () => ['said', 'elapsed', 'first-byte', 'received', 'share'].map((name) => shown(name)),
    /** What the live region says. */
    announced: () => part(root, 'status').parentElement?.textContent,
    progress: createGenerationProgress(root, { text }),
  };
}

describe('the progress of a generation', () => {
  it('shows the time, the first byte, the bytes and the share, and stands still once it is over', async () => {
    const { advance, root, lines, figures, shown, progress } = openProgress();
    expect(root.dataset['state']).toBe('idle');
    const line = progress.begin('Rain', () => {});
    await advance(1_000);
    line.update(WAITING);
    expect([root.dataset['state'], shown('title')]).toEqual(['filled', 'Rain']);
    expect(figures()).toEqual([english.asking, '1.0s', '–', '–', '']);
    await advance(61_300);
    line.update({ ...ARRIVING, bytes: 1_440_044 });
    line.showShare(0.45);
    expect(figures()).toEqual([english.arriving, '62.3s', '1,230ms', '1.4 MB', '45%']);
    expect(lines()[0]?.querySelector('[data-known]')).not.toBeNull();
    line.end('broken');
    const atEnd = [english.broken, '62.3s', '1,230ms', '1.4 MB', ''];
    expect(figures()).toEqual(atEnd);
    await advance(10_000);
    expect(figures()).toEqual(atEnd);
    progress.begin('Snow', () => {});
    expect([figures(), lines().length]).toEqual([[english.asking, '0.0s', '–', '–', ''], 1]);
  });

  it('says that it reconnects until the track goes on', () => {
    const { announced, shown, progress } = openProgress();
    const line = progress.begin('Rain', () => {});
    for (const [state, bytes, said] of [
      ['recovering', 0, english.orderingAgain],
      ['arriving', 9, english.arriving],
      ['recovering', 9, english.recovering],
      ['arriving', 18, english.arriving],
    ] as const) {
      line.update({ ...ARRIVING, state, bytes });
      expect([shown('said'), announced()]).toEqual([said, said]);
    }
  });

  it('has a line for each of several, is announced with titles then, and removed after a refusal', () => {
    const { root, lines, announced, shown, progress } = openProgress();
    const rain = progress.begin('Rain', () => {});
    expect(announced()).toBe(english.asking);
    const snow = progress.begin('Snow', () => {});
    expect(announced()).toBe(`Snow: ${english.asking}`);
    rain.update({ ...ARRIVING, bytes: 1_000 });
    expect(announced()).toBe(`Rain: ${english.arriving}`);
    expect([shown('title', 0), shown('title', 1), shown('received', 1)]).toEqual(['Rain', 'Snow', '–']);
    snow.remove();
    expect(lines()).toHaveLength(1);
    rain.remove();
    expect([root.dataset['state'], lines().length, announced()]).toEqual(['idle', 0, '']);
  });

  it('is cancelled for one of several, and the focus stays with its line', () => {
    const { document, lines, progress } = openProgress();
    const [onCancelRain, onCancelSnow] = [mock(() => {}), mock(() => {})];
    const rain = progress.begin('Rain', onCancelRain);
    progress.begin('Snow', onCancelSnow);
    const [line] = lines();
    const cancel = part<HTMLButtonElement>(line ?? document, 'cancel');
    cancel.focus();
    cancel.click();
    expect([onCancelRain.mock.calls.length, onCancelSnow.mock.calls.length]).toEqual([1, 0]);
    rain.end('cancelled');
    expect([document.activeElement === line, cancel.hidden]).toEqual([true, true]);
  });
});
