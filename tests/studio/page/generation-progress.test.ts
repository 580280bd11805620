import { expect, it, mock } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { createGenerationProgress } from '../../../src/demo/studio/generation-progress.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { openPart, shownText } from './page.ts';

it('each order has a line, which says what becomes of it, announces that, and is cancelled by itself', () => {
  const { document, root, text } = openPart('progress');
  const progress = createGenerationProgress(root, { text, figures: part(document, 'figures') });
  const [onCancelRain, onCancelSnow] = [mock(() => {}), mock(() => {})];
  const rain = progress.begin('Rain', onCancelRain);
  const first = (name: string) => part(part(root, 'lines').children[0] ?? root, name);
  const said = () => {
    // What the live region says of the only line is what the line says.
    expect(part(root, 'status').parentElement?.textContent).toBe(shownText(first('said')));
    return shownText(first('said'));
  };
  const paid = () => shownText(part(root, 'paid'));
  const figures = { elapsedMs: 0, totalBytes: undefined, firstByteMs: 1, bytes: 9 };
  expect([said(), paid()]).toEqual([english.asking, '']);
  rain.update({ ...figures, state: 'recovering', bytes: 0 });
  expect(said()).toBe(english.orderingAgain);
  rain.pay();
  rain.update({ ...figures, state: 'arriving' });
  expect([said(), paid()]).toEqual([english.arriving, english.paidFor]);
  rain.update({ ...figures, state: 'recovering' });
  expect(said()).toBe(english.recovering);

  const snow = progress.begin('Snow', onCancelSnow);
  first('cancel').click();
  expect([onCancelRain.mock.calls.length, onCancelSnow.mock.calls.length]).toEqual([1, 0]);
  rain.end('cancelled');
  expect([first('cancel').hidden, paid()]).toEqual([true, '']);
  snow.end('broken');
  expect(part(root, 'status').parentElement?.textContent).toBe(`Snow: ${english.broken}`);
  progress.begin('Hail', () => {});
  expect([part(root, 'lines').children.length, said()]).toEqual([1, english.asking]);
});
