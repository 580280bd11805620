/** Renders any range of the bytes of a composition's WAV file. */

import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import type { Composition } from './composition.ts';
import { renderSamples, SAMPLE_RATE, sampleCount } from './synthesiser.ts';

const HEADER_BYTES = 44;
const SAMPLE_BYTES = 2;
const BYTES_PER_SECOND = SAMPLE_RATE * SAMPLE_BYTES;
const CHUNK_BYTES = BYTES_PER_SECOND / 2;

export interface StreamOptions {
  /** The speed of the stream as a multiple of playback speed. Infinity streams as fast as possible. */
  pace: number;
  /** How long ago the file was begun: what has been made since is streamed at once. By default, it begins now. */
  sinceMs?: number;
  /** The first byte and the end (exclusive) of a range. By default, the whole file is streamed. */
  fromByte?: number;
  toByte?: number;
}

/** The size of the file in bytes, including the header. */
export function wavSize(lengthMs: number): number {
  return HEADER_BYTES + sampleCount(lengthMs) * SAMPLE_BYTES;
}

/** The 44 bytes before the audio: PCM, one channel, 16 bits, 24,000 Hz. */
export function wavHeader(lengthMs: number): Uint8Array {
  const header = Buffer.alloc(HEADER_BYTES);
  header.write('RIFF', 0);
  header.writeUInt32LE(wavSize(lengthMs) - 8, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(SAMPLE_RATE, 24);
  header.writeUInt32LE(BYTES_PER_SECOND, 28);
  header.writeUInt16LE(SAMPLE_BYTES, 32);
  header.writeUInt16LE(8 * SAMPLE_BYTES, 34);
  header.write('data', 36);
  header.writeUInt32LE(wavSize(lengthMs) - HEADER_BYTES, 40);
  return header;
}

/** Renders the file's bytes from `fromByte` up to `toByte`, exclusive, or up to the end of the file. */
export function renderWav(
  composition: Composition,
  fromByte: number,
  toByte: number,
): Uint8Array<ArrayBuffer> {
  const end = Math.min(toByte, wavSize(composition.lengthMs));
  const bytes = new Uint8Array(Math.max(0, end - fromByte));
  const header = wavHeader(composition.lengthMs).subarray(fromByte, Math.max(fromByte, end));
  bytes.set(header);
  const audioFrom = fromByte + header.length - HEADER_BYTES;
  const audioTo = end - HEADER_BYTES;
  if (audioTo <= audioFrom) return bytes;

  const firstSample = Math.floor(audioFrom / SAMPLE_BYTES);
  const samples = renderSamples(composition, firstSample, Math.ceil(audioTo / SAMPLE_BYTES));
  // Bun runs only on little-endian machines, so the samples already have the file's byte order.
  const audio = new Uint8Array(samples.buffer, audioFrom - firstSample * SAMPLE_BYTES, audioTo - audioFrom);
  bytes.set(audio, header.length);
  return bytes;
}

/** Streams the file in chunks of half a second, each rendered when the reader asks for it. */
export function streamWav(composition: Composition, options: StreamOptions): ReadableStream<Uint8Array> {
  const { pace, sinceMs = 0, fromByte = 0, toByte = Number.POSITIVE_INFINITY } = options;
  const end = Math.min(toByte, wavSize(composition.lengthMs));
  const startedAt = performance.now() - sinceMs;
  const cancelled = new AbortController();
  const { signal } = cancelled;
  let position = fromByte;

  return new ReadableStream({
    async pull(controller) {
      const dueAt = startedAt + (position / BYTES_PER_SECOND / pace) * 1_000;
      const waitMs = dueAt - performance.now();
      // Even a chunk that is due waits for a turn of the event loop, so that no stream delays other requests.
      if (waitMs <= 0) await turn(undefined, { signal });
      else await wait(waitMs, undefined, { signal });
      const next = Math.min(position + CHUNK_BYTES, end);
      controller.enqueue(renderWav(composition, position, next));
      position = next;
      if (position >= end) controller.close();
    },
    cancel() {
      cancelled.abort();
    },
  });
}
