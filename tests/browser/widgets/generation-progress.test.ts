import { describe, expect, it } from 'bun:test';
import { createGenerationProgress } from '../../../src/demo/studio/generation-progress.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { fakeTime, openPage, viewOf } from './page.ts';

function openProgress() {
  const { document, text } = openPage();
  const root = part(document, 'progress');
  const status = part(root, 'status');
  const figures = () => ['elapsed', 'first-byte', 'received'].map((name) => part(root, name).textContent);
  return { document, root, status, figures, progress: createGenerationProgress(root, { text }) };
}

describe('the progress of a generation', () => {
  it('shows nothing until one begins, and then has no other figure than the time until its first byte', async () => {
    const advance = fakeTime();
    const { root, status, figures, progress } = openProgress();
    expect(root.dataset['state']).toBe('idle');
    progress.begin();
    expect(root.dataset['state']).toBe('running');
    expect(status.textContent).toBe('Your track is on its way.');
    expect(figures()).toEqual(['0.0s', '–', '–']);
    await advance(1_000);
    progress.update({ bytes: 0, elapsedMs: 1_000, firstByteMs: undefined });
    expect(figures()).toEqual(['1.0s', '–', '–']);
    expect(status.textContent).toBe('Your track is on its way.');
  });

  it('tells when the first byte was here, and how much is here by now', async () => {
    const advance = fakeTime();
    const { figures, progress } = openProgress();
    progress.begin();
    await advance(1_500);
    progress.update({ bytes: 48_000, elapsedMs: 1_500, firstByteMs: 1_230.4 });
    await advance(800);
    progress.update({ bytes: 1_440_044, elapsedMs: 2_300, firstByteMs: 1_230.4 });
    expect(figures()).toEqual(['2.3s', '1,230ms', '1.4 MB']);
  });

  it('goes on in time while nothing arrives, and stands still when it is over', async () => {
    const advance = fakeTime();
    const { root, figures, progress } = openProgress();
    progress.begin();
    await advance(60_000);
    expect(figures()[0]).toBe('60.0s');
    await advance(50);
    progress.end('complete');
    expect(root.dataset['state']).toBe('over');
    const atEnd = figures()[0];
    await advance(10_000);
    expect(figures()[0]).toBe(atEnd);
  });

  it.each([
    ['complete', 'Your track is complete, and in your library.'],
    ['cancelled', 'Cancelled. A track that was begun is paid for: it still lands in your library.'],
    ['broken', 'The track did not arrive completely.'],
  ] as const)('says when it is %s', (outcome, said) => {
    const { status, progress } = openProgress();
    progress.begin();
    progress.end(outcome);
    expect(status.textContent).toBe(said);
  });

  it('is spoken three times, however many pieces arrive and however long it takes', async () => {
    const advance = fakeTime();
    const { document, status, progress } = openProgress();
    const spoken: string[] = [];
    const observer = new (viewOf(document).MutationObserver)(() => void spoken.push(status.textContent));
    observer.observe(status, { childList: true, characterData: true, subtree: true });
    expect(status.getAttribute('role')).toBe('status');
    progress.begin();
    await advance(1_000);
    for (let piece = 1; piece <= 20; piece++) {
      progress.update({ bytes: piece * 1_000, elapsedMs: 1_000, firstByteMs: 1_000 });
      await advance(100);
    }
    progress.end('complete');
    await advance(1_000);
    expect(spoken).toHaveLength(3);
    expect(new Set(spoken).size).toBe(3);
  });

  it('has no timing part in what is spoken: the figures are outside of the live region', () => {
    const { root, status } = openProgress();
    expect(status.contains(part(root, 'elapsed'))).toBe(false);
    expect(part(root, 'received').closest('[role=status],[aria-live]')).toBeNull();
  });

  it('shows nothing again, and has nothing left to say, after an order that was refused', async () => {
    const advance = fakeTime();
    const { root, status, figures, progress } = openProgress();
    progress.begin();
    progress.hide();
    expect(root.dataset['state']).toBe('idle');
    expect(status.textContent).toBe('');
    const atEnd = figures()[0];
    await advance(1_000);
    expect(figures()[0]).toBe(atEnd);
  });

  it('begins from nothing for the next track', async () => {
    const advance = fakeTime();
    const { status, figures, progress } = openProgress();
    progress.begin();
    await advance(5_000);
    progress.update({ bytes: 48_000, elapsedMs: 5_000, firstByteMs: 5_000 });
    progress.end('complete');
    progress.begin();
    expect(figures()).toEqual(['0.0s', '–', '–']);
    expect(status.textContent).toBe('Your track is on its way.');
  });
});
