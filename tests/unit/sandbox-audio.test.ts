/** The sandbox's audio: the same music from the same order, as a WAV file in any pieces. */

import { expect, it } from 'bun:test';
import { setImmediate as turn } from 'node:timers/promises';
import { composeTrack } from '../../src/demo/sandbox/audio/composition.ts';
import { renderWav, streamWav, wavSize } from '../../src/demo/sandbox/audio/wav.ts';

function compose(prompt: string, lengthMs: number, model = 'model-1') {
  const composition = composeTrack({ prompt, model, lengthMs });
  return { composition, file: Buffer.from(renderWav(composition, 0, wavSize(lengthMs))) };
}

it('renderWav() begins with the header of a mono file of 16 bits', () => {
  const { file } = compose('a lullaby', 10_250);
  expect(file).toHaveLength(44 + 10.25 * 48_000);
  expect(file.toString('latin1', 0, 44)).toMatch(/^RIFF.{4}WAVEfmt .{20}data.{4}$/s);
  const sizesAndRates = [4, 16, 24, 28, 40].map((at) => file.readUInt32LE(at));
  expect(sizesAndRates).toEqual([file.length - 8, 16, 24_000, 48_000, file.length - 44]);
  expect([20, 22, 32, 34].map((at) => file.readUInt16LE(at))).toEqual([1, 1, 2, 16]);
});

it.each([1, 43, 45, 4_801, 100_000])('renderWav() renders the same in pieces of %p bytes', (size) => {
  const { composition, file } = compose('epic battle', 3_000);
  const end = Math.min(file.length, size * 200);
  const pieces = Array.from({ length: Math.ceil(end / size) }, (_, n) =>
    renderWav(composition, n * size, Math.min(end, (n + 1) * size)),
  );
  expect(Buffer.concat(pieces).equals(file.subarray(0, end))).toBe(true);
});

it('streamWav() streams the same for the same prompt and model alone, and leaves the event loop free', async () => {
  const { composition, file } = compose('jazz night', 10_250);
  const streamed = Array.fromAsync(streamWav(composition, { pace: Number.POSITIVE_INFINITY }));
  const turns = (async () => {
    for (let n = 0; n < 10; n++) await turn();
    return 'ten turns';
  })();
  expect(await Promise.race([streamed, turns])).toBe('ten turns');
  expect(Buffer.concat(await streamed).equals(compose('jazz night', 10_250).file)).toBe(true);
  for (const other of [compose('jazz day', 10_250), compose('jazz night', 10_250, 'model-2')]) {
    expect(other.file.equals(file)).toBe(false);
  }
});
