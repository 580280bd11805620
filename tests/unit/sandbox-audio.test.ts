/** The sandbox's audio: the same music from the same order, as a WAV file in any pieces. */

import { describe, expect, it } from 'bun:test';
import { setImmediate as turn } from 'node:timers/promises';
import { type Composition, composeTrack } from '../../src/demo/sandbox/audio/composition.ts';
import { renderWav, streamWav, wavSize } from '../../src/demo/sandbox/audio/wav.ts';

const HEADER_BYTES = 44;
const RATE = 24_000;
const AT_ONCE = { pace: Number.POSITIVE_INFINITY };

function compose(prompt: string, lengthMs: number, model = 'model-1'): Composition {
  return composeTrack({ prompt, model, lengthMs });
}

function whole(composition: Composition): Buffer {
  return Buffer.from(renderWav(composition, 0, wavSize(composition.lengthMs)));
}

describe('renderWav()', () => {
  it.each([3_000, 10_250])('begins with the header of a file of %d ms', (lengthMs) => {
    const file = whole(compose('a lullaby', lengthMs));
    expect(file).toHaveLength(HEADER_BYTES + (lengthMs / 1_000) * 2 * RATE);
    expect(file.toString('latin1', 0, HEADER_BYTES)).toMatch(/^RIFF.{4}WAVEfmt .{20}data.{4}$/s);
    const sizesAndRates = [4, 16, 24, 28, 40].map((at) => file.readUInt32LE(at));
    expect(sizesAndRates).toEqual([file.length - 8, 16, RATE, 2 * RATE, file.length - HEADER_BYTES]);
    // PCM, one channel, two bytes a frame, sixteen bits a sample.
    expect([20, 22, 32, 34].map((at) => file.readUInt16LE(at))).toEqual([1, 1, 2, 16]);
  });

  it('renders the same bytes for the same prompt and model, and only for them', () => {
    const audio = whole(compose('a lullaby', 3_000));
    expect(audio.equals(whole(compose('a lullaby', 3_000)))).toBe(true);
    expect(audio.equals(whole(compose('another lullaby', 3_000)))).toBe(false);
    expect(audio.equals(whole(compose('a lullaby', 3_000, 'another model')))).toBe(false);
  });

  it.each([1, 43, 45, 4_801, 100_000])('renders the same in pieces of %p bytes', (size) => {
    const composition = compose('epic battle', 3_000);
    const file = whole(composition).subarray(0, size * 200);
    const pieces = Array.from({ length: Math.ceil(file.length / size) }, (_, n) =>
      renderWav(composition, n * size, Math.min(file.length, (n + 1) * size)),
    );
    expect(Buffer.concat(pieces).equals(file)).toBe(true);
  });
});

describe('streamWav()', () => {
  it('streams what renderWav() renders, half a second a chunk, and leaves the event loop free between them', async () => {
    const composition = compose('jazz night', 10_250);
    const streamed = Array.fromAsync(streamWav(composition, AT_ONCE));
    const turns = (async () => {
      for (let n = 0; n < 10; n++) await turn();
      return 'ten turns';
    })();
    expect(await Promise.race([streamed, turns])).toBe('ten turns');
    const chunks = await streamed;
    expect(Buffer.concat(chunks).equals(whole(composition))).toBe(true);
    expect(chunks.slice(0, -1).every(({ length }) => length === RATE)).toBe(true);
  });

  it('produces the rest at its pace', async () => {
    const startedAt = performance.now();
    await Array.fromAsync(streamWav(compose('jazz night', 3_000), { pace: 30 }));
    // Timers count whole milliseconds, and may be one early.
    expect(performance.now() - startedAt).toBeGreaterThan(98);
  });
});
