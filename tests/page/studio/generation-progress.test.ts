import { describe, expect, it, mock } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { createGenerationProgress } from '../../../src/demo/studio/generation-progress.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { fakeTime, openPart, shownText } from './page.ts';

const WAITING = {
  state: 'waiting',
  bytes: 0,
  elapsedMs: 0,
  firstByteMs: undefined,
  totalBytes: undefined,
} as const;
const ARRIVING = { ...WAITING, state: 'arriving', firstByteMs: 1_230.4 } as const;

function openProgress() {
  const advance = fakeTime();
  const { document, root, text } = openPart('progress');
  const lines = () => [...part(root, 'lines').children];
  const shown = (name: string, index = 0) => shownText(part(lines()[index] ?? root, name));
  return {
    ...{ document, advance, root, lines, shown },
    figures: () => ['said', 'elapsed', 'first-byte', 'received'].map((name) => shown(name)),
    /** What the live region says. */
    announced: () => part(root, 'status').parentElement?.textContent,
    progress: createGenerationProgress(root, { text }),
  };
}

describe('the progress of a generation', () => {
  it('shows the time, then when the first byte arrived and how many there are', async () => {
    const { advance, root, figures, shown, progress } = openProgress();
    expect(root.dataset['state']).toBe('idle');
    const line = progress.begin('Rain', () => {});
    await advance(1_000);
    line.update(WAITING);
    expect([root.dataset['state'], shown('title')]).toEqual(['filled', 'Rain']);
    expect(figures()).toEqual([english.asking, '1.0s', '–', '–']);
    await advance(1_300);
    line.update({ ...ARRIVING, bytes: 1_440_044 });
    expect(shown('share')).toBe('');
    expect(figures()).toEqual([english.arriving, '2.3s', '1,230ms', '1.4 MB']);
    await advance(60_000);
    expect(figures()[1]).toBe('62.3s');
  });

  it('stands still once it is over, and is replaced by that of the next track', async () => {
    const { advance, lines, figures, shown, progress } = openProgress();
    const line = progress.begin('Rain', () => {});
    line.update({ ...ARRIVING, bytes: 48_000 });
    line.showShare(0.45);
    expect([shown('share'), lines()[0]?.querySelector('[data-known]') === null]).toEqual(['45%', false]);
    await advance(5_050);
    line.end('broken');
    expect([figures()[0], shown('share')]).toEqual([english.broken, '']);
    const atEnd = figures();
    await advance(10_000);
    expect(figures()).toEqual(atEnd);
    progress.begin('Snow', () => {});
    expect(figures()).toEqual([english.asking, '0.0s', '–', '–']);
    expect(lines()).toHaveLength(1);
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

  it('is removed and silent after a refused order', () => {
    const { root, lines, announced, progress } = openProgress();
    progress.begin('Rain', () => {}).remove();
    expect([root.dataset['state'], lines().length, announced()]).toEqual(['idle', 0, '']);
  });
});

describe('several generations', () => {
  it('have a line each, and are announced with their titles', () => {
    const { lines, announced, shown, progress } = openProgress();
    const rain = progress.begin('Rain', () => {});
    expect(announced()).toBe(english.asking);
    const snow = progress.begin('Snow', () => {});
    expect(announced()).toBe(`Snow: ${english.asking}`);
    rain.update({ ...ARRIVING, bytes: 1_000 });
    expect(announced()).toBe(`Rain: ${english.arriving}`);
    expect([shown('title', 0), shown('title', 1)]).toEqual(['Rain', 'Snow']);
    expect(shown('received', 1)).toBe('–');
    snow.remove();
    expect(lines()).toHaveLength(1);
  });

  it('are cancelled one by one, and the focus stays with the line', () => {
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
