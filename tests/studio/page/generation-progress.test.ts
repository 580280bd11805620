import { describe, expect, it, mock } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { createGenerationProgress } from '../../../src/demo/studio/generation-progress.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { fakeTime } from '../../client/fake-time.ts';
import { openPart, shownText } from './page.ts';

const ARRIVING = { elapsedMs: 0, totalBytes: undefined, state: 'arriving', firstByteMs: 1_230.4 } as const;

function openProgress() {
  const { document, root, text } = openPart('progress');
  const lines = () => [...part(root, 'lines').children];
  const facts = part(document, 'figures');
  const first = (name: string) => part(lines()[0] ?? root, name);
  return {
    ...{ document, root, lines, first, progress: createGenerationProgress(root, { text, figures: facts }) },
    shown: (...names: string[]) => names.map((name) => shownText(first(name))),
    figures: () => [
      ...['title', 'said', 'share'].map((name) => shownText(first(name))),
      ...['elapsed', 'first-byte', 'received'].map((name) => shownText(part(facts, name))),
    ],
    /** What the live region says. */
    announced: () => part(root, 'status').parentElement?.textContent,
  };
}

describe('the progress of a generation', () => {
  it('shows the share, and among what the gateway did the time, the first byte and the bytes', () => {
    const { figures, lines, progress } = openProgress();
    const line = progress.begin('Rain', () => {});
    line.update({ ...ARRIVING, state: 'waiting', bytes: 0, firstByteMs: undefined });
    expect(figures()).toEqual(['Rain', english.asking, '', '–', '–', '–']);
    line.update({ ...ARRIVING, elapsedMs: 62_300, bytes: 1_440_044 });
    line.showShare(0.45);
    expect(figures()).toEqual(['Rain', english.arriving, '45%', '62.3s', '1,230ms', '1.4 MB']);
    expect(lines()[0]?.querySelector('[data-known]')).not.toBeNull();
    line.end('broken');
    expect(figures()).toEqual(['Rain', english.broken, '', '62.3s', '1,230ms', '1.4 MB']);
    progress.begin('Snow', () => {});
    expect([figures(), lines().length]).toEqual([['Snow', english.asking, '', '–', '–', '–'], 1]);
  });

  it('claims nothing before the track is begun, and explains once for all tracks that those are paid for', () => {
    const { root, shown, progress } = openProgress();
    const said = () => [...shown('cancel', 'said'), shownText(part(root, 'paid'))];
    const line = progress.begin('Rain', () => {});
    line.queue();
    expect(said()).toEqual([english.stopWaiting, english.queued, '']);
    const snow = progress.begin('Snow', () => {});
    for (const each of [line, snow]) each.pay();
    expect(said()).toEqual([english.stopWaiting, english.queued, english.paidFor]);
    line.listen(false);
    expect(said()[0]).toBe(english.stopReceiving);
    line.listen(true);
    expect(said()[0]).toBe(english.stopListening);
    line.end('cancelled');
    expect(said()).toEqual(['', english.cancelled, english.paidFor]);
    snow.remove();
    expect(said()[2]).toBe('');
  });

  it('folds away when the track is complete, except under the focus, and stays announced', async () => {
    const advance = fakeTime();
    const { root, lines, first, announced, progress } = openProgress();
    const [hail, rain, snow] = ['Hail', 'Rain', 'Snow'].map((title) => progress.begin(title, () => {}));
    first('cancel').focus();
    for (const line of [hail, snow]) line?.end('complete');
    const titles = () => lines().map((line) => shownText(part(line, 'title')));
    await advance(7_999);
    expect(titles()).toEqual(['Hail', 'Rain', 'Snow']);
    await advance(1);
    expect(titles()).toEqual(['Hail', 'Rain']);
    rain?.end('complete');
    part(root, 'lines').querySelector('li')?.blur();
    await advance(8_000);
    expect([root.dataset['state'], titles(), announced()]).toEqual(['idle', [], `Rain: ${english.complete}`]);
  });

  it('is announced, with its title beside another one, and is cancelled by itself', () => {
    const { document, root, lines, first, announced, progress } = openProgress();
    const [onCancelRain, onCancelSnow] = [mock(() => {}), mock(() => {})];
    const rain = progress.begin('Rain', onCancelRain);
    expect([root.dataset['state'], announced()]).toEqual(['filled', english.asking]);
    for (const [state, bytes, said] of [
      ['recovering', 0, english.orderingAgain],
      ['arriving', 9, english.arriving],
      ['recovering', 9, english.recovering],
    ] as const) {
      rain.update({ ...ARRIVING, state, bytes });
      expect(announced()).toBe(said);
    }
    const snow = progress.begin('Snow', onCancelSnow);
    expect(announced()).toBe(`Snow: ${english.asking}`);
    first('cancel').focus();
    first('cancel').click();
    expect([onCancelRain.mock.calls.length, onCancelSnow.mock.calls.length]).toEqual([1, 0]);
    rain.end('cancelled');
    expect([announced(), first('cancel').hidden]).toEqual([`Rain: ${english.cancelled}`, true]);
    expect(document.activeElement).toBe(lines()[0] ?? null);
    for (const line of [snow, rain]) line.remove();
    expect([root.dataset['state'], lines().length, announced()]).toEqual(['idle', 0, '']);
  });
});
