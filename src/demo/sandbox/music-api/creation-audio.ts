/** Makes the responses with a creation's audio: of an order a stream, of its content a file with ranges. */

import { composeTrack } from '../audio/composition.ts';
import { renderWav, streamWav, wavSize } from '../audio/wav.ts';
import { ApiError } from './api-error.ts';
import { type ByteRange, parseRange } from './byte-range.ts';
import type { Creation, Progress } from './library.ts';

// Bun sends a streamed body in chunks and drops its Content-Length, so small bodies are not streamed.
const MAX_BYTES_IN_ONE_PIECE = 256 * 1_024;

/** Streams the audio, and calls `onEnd` after the last chunk. */
export function streamGeneration(creation: Creation, progress: Progress, onEnd: () => void): Response {
  const audio = streamWav(compose(creation), progress);
  return new Response(audio.pipeThrough(new TransformStream({ flush: onEnd })), {
    headers: {
      'Content-Type': 'audio/wav',
      'Content-Disposition': disposition('attachment', creation),
      'X-Generation-Id': creation.generationId,
      'X-Music-Creation-Id': creation.id,
    },
  });
}

/**
 * The response to GET or HEAD of the file. While it is being made, the part that is not there yet follows at its pace.
 * Understands one range, If-Range and If-None-Match.
 *
 * @see RFC 9110 sections 13 and 14
 */
export function contentResponse(request: Request, creation: Creation, progress: Progress): Response {
  const size = wavSize(creation.order.music_length_ms);
  const etag = `"${Bun.hash.xxHash64(JSON.stringify([creation.order, creation.heard])).toString(16)}"`;
  const headers = { 'Accept-Ranges': 'bytes', 'Cache-Control': 'no-cache', ETag: etag };
  if (matches(request.headers.get('if-none-match'), etag))
    return new Response(null, { status: 304, headers });

  const ifRange = request.headers.get('if-range');
  const rangeApplies = request.method === 'GET' && (ifRange === null || ifRange === etag);
  const range = rangeApplies ? parseRange(request.headers.get('range'), size) : undefined;
  if (range === 'unsatisfiable') {
    throw new ApiError(416, 'The range starts past the end', { 'Content-Range': `bytes */${size}` });
  }

  const { fromByte, toByte } = range ?? { fromByte: 0, toByte: size };
  const contentRange = range && { 'Content-Range': `bytes ${fromByte}-${toByte - 1}/${size}` };
  return new Response(request.method === 'HEAD' ? null : body(creation, { fromByte, toByte }, progress), {
    status: range ? 206 : 200,
    headers: {
      ...headers,
      ...contentRange,
      'Content-Type': 'audio/wav',
      'Content-Length': String(toByte - fromByte),
      'Content-Disposition': disposition('inline', creation),
    },
  });
}

function body(
  creation: Creation,
  { fromByte, toByte }: ByteRange,
  progress: Progress,
): Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> {
  const composition = compose(creation);
  const isThere = progress.pace === Number.POSITIVE_INFINITY;
  if (isThere && toByte - fromByte <= MAX_BYTES_IN_ONE_PIECE) return renderWav(composition, fromByte, toByte);
  return streamWav(composition, { ...progress, fromByte, toByte });
}

function compose({ order: { prompt, model, music_length_ms: lengthMs }, heard }: Creation) {
  return composeTrack({ prompt, model, lengthMs, heard });
}

/** If-None-Match uses the weak comparison (RFC 9110 section 13.1.2). */
function matches(header: string | null, etag: string): boolean {
  const tags = header?.split(',').map((tag) => tag.trim().replace(/^W\//, '')) ?? [];
  return tags.includes('*') || tags.includes(etag);
}

function disposition(kind: 'attachment' | 'inline', { order }: Creation): string {
  const words = order.prompt.toLowerCase().match(/[a-z0-9]+/g) ?? ['track'];
  return `${kind}; filename="${words.join('-').slice(0, 40)}.wav"`;
}
