/** Makes a Response that is complete: with the headers that hooks have set, CORS among them. */

import type { Context } from 'elysia';

/**
 * Elysia would copy the answer to add those headers one by one, and take its body through a stream: 14 us of the 80
 * that a small answer cost. An answer with cookies is left to it, which is once in a token's life.
 */
export function nativeResponse(
  set: Context['set'],
  body: ReadableStream<Uint8Array<ArrayBuffer>> | Uint8Array<ArrayBuffer> | null,
  status: number,
  headers: Readonly<Record<string, string>>,
): Response {
  if (set.headers['set-cookie'] !== undefined) return new Response(body, { status, headers });
  const all: Record<string, string> = {};
  for (const name in set.headers) all[name] = String(set.headers[name]);
  Object.assign(all, headers);
  set.headers = {};
  return new Response(body, { status, headers: all });
}
