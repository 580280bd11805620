/** Makes a Response that is complete: with the headers that hooks have set, CORS among them. */

import type { Context } from 'elysia';

type Body = ReadableStream<Uint8Array<ArrayBuffer>> | Uint8Array<ArrayBuffer> | null;

/** The plugin sets them on every answer; browsers look at them in that of a preflight alone. */
const ONLY_PREFLIGHT = new Set(['access-control-allow-headers', 'access-control-allow-methods']);

/** Head and body up to some 14 KB leave Bun in one piece. */
export const ONE_PIECE_BYTES = 12 * 1024;
/** A larger body is hardly ever here whole when its head leaves, and Bun's own stream costs less for it. */
const OFTEN_WHOLE_BYTES = 128 * 1024;

/**
 * Elysia would copy the answer to add those headers one by one, and take its body through a stream: 14 us of the 80
 * that a small answer cost. An answer with cookies is left to it, which is once in a token's life.
 */
export function nativeResponse(
  set: Context['set'],
  body: Body,
  status: number,
  headers: Readonly<Record<string, string>>,
): Response {
  const sent = inFewPieces(body, headers['content-length']);
  if (set.headers['set-cookie'] !== undefined) return new Response(sent, { status, headers });
  const all: Record<string, string> = {};
  for (const name in set.headers) if (!ONLY_PREFLIGHT.has(name)) all[name] = String(set.headers[name]);
  Object.assign(all, headers);
  set.headers = {};
  return new Response(sent, { status, headers: all });
}

/**
 * A larger body that is here whole makes Bun send every part of every header on its own: 30 calls to the system, and 40 ms
 * of waiting where the client's acknowledgement is delayed. From a stream of ours it does not know that. 64 KB: 148 us
 * instead of 275.
 */
function inFewPieces(body: Body, contentLength: string | undefined): Body {
  if (body === null) return null;
  const isBytes = body instanceof Uint8Array;
  const size = isBytes ? body.byteLength : Number(contentLength ?? Number.POSITIVE_INFINITY);
  if (size <= ONE_PIECE_BYTES || (!isBytes && size > OFTEN_WHOLE_BYTES)) return body;
  return isBytes ? streamOf(body) : restreamed(body);
}

function streamOf(bytes: Uint8Array<ArrayBuffer>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(bytes);
      controller.close();
    },
  });
}

function restreamed(body: ReadableStream<Uint8Array<ArrayBuffer>>): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
