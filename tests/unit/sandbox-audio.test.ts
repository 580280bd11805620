/** The sandbox's audio: the same music from the same order, as a WAV file in any pieces. */

import { describe, expect, it, mock } from 'bun:test';
import { setImmediate as turn } from 'node:timers/promises';
import { type Composition, composeTrack } from '../../src/demo/sandbox/audio/composition.ts';
import { renderWav, streamWav, wavHeader, wavSize } from '../../src/demo/sandbox/audio/wav.ts';

const HEADER_BYTES = 44;
const SAMPLES_PER_SECOND = 24_000;
const AT_ONCE = { pace: Number.POSITIVE_INFINITY };

describe('composeTrack()', () => {
  it('writes every bar in sixteen steps', () => {
    const tracks = Array.from({ length: 200 }, (_, n) => compose(`prompt ${n}`, 3_000));
    const bars = tracks.flatMap(({ parts }) => Object.values(parts).flat());
    expect(bars.filter((bar) => !/^[\d.]{16}$/.test(bar))).toEqual([]);
  });
});

describe('wavHeader()', () => {
  it.each([3_000, 30_000, 600_000])('describes a file of exactly %p ms', (lengthMs) => {
    const header = Buffer.from(wavHeader(lengthMs));
    const dataSize = header.readUInt32LE(40);
    expect(header.toString('latin1')).toMatch(/^RIFF.{4}WAVEfmt .{20}data.{4}$/s);
    const sizesAndRates = [4, 16, 24, 28].map((at) => header.readUInt32LE(at));
    expect(sizesAndRates).toEqual([wavSize(lengthMs) - 8, 16, 24_000, 48_000]);
    // PCM, one channel, two bytes a frame, sixteen bits a sample.
    expect([20, 22, 32, 34].map((at) => header.readUInt16LE(at))).toEqual([1, 1, 2, 16]);
    expect(dataSize).toBe(wavSize(lengthMs) - HEADER_BYTES);
    expect((dataSize / 48_000) * 1_000).toBe(lengthMs);
  });
});

describe('renderWav()', () => {
  it('renders the same bytes for the same prompt and model, and only for them', () => {
    const audio = whole(compose('a lullaby', 3_000));
    expect(audio.subarray(0, HEADER_BYTES).equals(wavHeader(3_000))).toBe(true);
    expect(audio).toHaveLength(wavSize(3_000));
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

  it('renders a range deep in a long track, up to the file end at most', () => {
    const composition = compose('epic battle', 600_000);
    const size = wavSize(600_000);
    const lastSecond = renderWav(composition, size - 48_001, size + 5_000);
    expect(lastSecond).toHaveLength(48_001);
    const piece = Buffer.from(renderWav(composition, size - 20_001, size - 10_000));
    expect(piece.equals(lastSecond.subarray(28_000, 38_001))).toBe(true);
    expect(renderWav(composition, size, size + 1)).toHaveLength(0);
  });

  it('begins a longer track with the same tune', () => {
    const short = whole(compose('a lullaby', 4_000));
    const long = whole(compose('a lullaby', 12_000));
    // The short one's last quarter fades out.
    const threeSeconds = [HEADER_BYTES, HEADER_BYTES + 6 * SAMPLES_PER_SECOND] as const;
    expect(short.subarray(...threeSeconds).equals(long.subarray(...threeSeconds))).toBe(true);
  });

  it.each(['calm piano', 'energetic synthwave', 'a lullaby', 'jazz night', '😀', ''])(
    'renders music for %p that is never silent, never clipped, without DC offset, and fades in and out',
    (prompt) => {
      const samples = samplesOf(whole(compose(prompt, 40_000)));
      for (let at = 0; at < samples.length; at += SAMPLES_PER_SECOND) {
        expect(loudness(samples.subarray(at, at + SAMPLES_PER_SECOND))).toBeGreaterThan(0.03);
      }
      const peak = samples.reduce((highest, sample) => Math.max(highest, Math.abs(sample)), 0);
      expect(peak).toBeWithin(0.6, 0.75);
      const mean = samples.reduce((sum, sample) => sum + sample, 0) / samples.length;
      expect(Math.abs(mean)).toBeLessThan(0.002);
      expect(loudness(samples.subarray(0, 20))).toBeLessThan(0.02);
      expect(loudness(samples.subarray(-100))).toBeLessThan(0.002);
    },
  );
});

// Ranges, and audio before it is complete: integration/demo/sandbox-music-api.test.ts.
describe('streamWav()', () => {
  it('streams what renderWav renders, half a second a chunk', async () => {
    const composition = compose('jazz night', 10_250);
    const chunks = await Array.fromAsync(streamWav(composition, AT_ONCE));
    expect(Buffer.concat(chunks).equals(whole(composition))).toBe(true);
    expect(chunks.slice(0, -1).every((chunk) => chunk.length === SAMPLES_PER_SECOND)).toBe(true);
  });

  it('produces the rest at its pace', async () => {
    const startedAt = performance.now();
    await Array.fromAsync(streamWav(compose('jazz night', 3_000), { pace: 30 }));
    // Timers count whole milliseconds, and may be one early.
    expect(performance.now() - startedAt).toBeGreaterThan(98);
  });

  it('leaves the event loop free between chunks', async () => {
    const audio = Array.fromAsync(streamWav(compose('jazz night', 10_000), AT_ONCE));
    const first = await Promise.race([audio.then(() => 'the audio'), turns(10).then(() => 'ten turns')]);
    expect(first).toBe('ten turns');
    expect((await audio).length).toBeGreaterThan(10);
  });

  it('renders only what is read', async () => {
    const { reader, stepsIn } = watchedStream();
    await reader.read();
    await turns(20);
    expect(await stepsIn(20)).toBe(0);
    await reader.read();
    expect(await stepsIn(20)).toBeGreaterThan(0);
    await reader.cancel();
  });

  it('renders nothing more once it is cancelled', async () => {
    const { reader, stepsIn } = watchedStream();
    await reader.read();
    // By now the next chunk is waiting for its turn.
    await turns(1);
    await reader.cancel();
    expect(await stepsIn(20)).toBe(0);
  });
});

/** A stream, and how many steps it renders in some turns of the event loop: each reads the score once. */
function watchedStream() {
  const tune = compose('jazz night', 60_000);
  const sections = mock(() => tune.sections);
  const composition = Object.defineProperty({ ...tune }, 'sections', { get: sections });
  const stepsIn = async (count: number) => {
    const before = sections.mock.calls.length;
    await turns(count);
    return sections.mock.calls.length - before;
  };
  return { reader: streamWav(composition, AT_ONCE).getReader(), stepsIn };
}

function compose(prompt: string, lengthMs: number, model = 'model-1'): Composition {
  return composeTrack({ prompt, model, lengthMs });
}

function whole(composition: Composition): Buffer {
  return Buffer.from(renderWav(composition, 0, wavSize(composition.lengthMs)));
}

function samplesOf(file: Buffer): Float32Array {
  const count = (file.length - HEADER_BYTES) / 2;
  return Float32Array.from({ length: count }, (_, n) => file.readInt16LE(HEADER_BYTES + 2 * n) / 32_768);
}

function loudness(samples: Float32Array): number {
  return Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);
}

async function turns(count: number): Promise<void> {
  for (let n = 0; n < count; n++) await turn();
}
