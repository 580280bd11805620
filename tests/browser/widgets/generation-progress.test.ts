import { describe, expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { createGenerationProgress } from '../../../src/demo/studio/generation-progress.ts';
import { fakeTime, openPart } from './page.ts';

const WAITING = { state: 'waiting', bytes: 0, firstByteMs: undefined, totalBytes: undefined } as const;
const ARRIVING = { ...WAITING, state: 'arriving' } as const;

function openProgress() {
  const advance = fakeTime();
  const { root, text, shown } = openPart('progress');
  const figures = () => ['status', 'elapsed', 'first-byte', 'received'].map(shown);
  return { advance, root, shown, figures, progress: createGenerationProgress(root, { text }) };
}

describe('the progress of a generation', () => {
  it('shows the time, then when the first byte arrived and how many there are', async () => {
    const { advance, root, figures, progress } = openProgress();
    expect(root.dataset['state']).toBe('idle');
    progress.begin();
    await advance(1_000);
    progress.update({ ...WAITING, elapsedMs: 1_000 });
    expect([root.dataset['state'], ...figures()]).toEqual(['running', english.asking, '1.0s', '–', '–']);
    await advance(1_300);
    progress.update({ ...ARRIVING, bytes: 1_440_044, elapsedMs: 2_300, firstByteMs: 1_230.4 });
    expect(figures().slice(1)).toEqual(['2.3s', '1,230ms', '1.4 MB']);
    await advance(60_000);
    expect(figures()[1]).toBe('62.3s');
  });

  it('stands still once it is over, and begins from nothing for the next track', async () => {
    const { advance, root, shown, figures, progress } = openProgress();
    progress.begin();
    progress.update({ ...ARRIVING, bytes: 48_000, elapsedMs: 5_000, firstByteMs: 5_000 });
    await advance(5_050);
    progress.end('broken');
    expect([root.dataset['state'], shown('status')]).toEqual(['over', english.broken]);
    const atEnd = figures();
    await advance(10_000);
    expect(figures()).toEqual(atEnd);
    progress.begin();
    expect(figures()).toEqual([english.asking, '0.0s', '–', '–']);
  });

  it('is hidden, silent and stopped after a refused order', async () => {
    const { advance, root, figures, progress } = openProgress();
    progress.begin();
    progress.hide();
    await advance(1_000);
    expect([root.dataset['state'], ...figures()]).toEqual(['idle', '', '0.0s', '–', '–']);
  });
});
