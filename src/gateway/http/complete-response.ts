/** Makes a Response that already has the headers set by hooks, such as CORS headers. */

import type { Context } from 'elysia';
import { traceOf } from '../trace/request-trace.ts';
import type { Connection } from './idle-timeout.ts';
import { type ByteStream, observedBody, type PaidBody } from './observed-body.ts';

type Body = ByteStream | Uint8Array<ArrayBuffer> | null;

/** A request whose response is being made, and the headers that hooks have set for it. */
export interface Responding extends Connection {
  readonly set: Context['set'];
}

/** The plugin sets them on every response, but browsers read them only in the response to a preflight. */
const ONLY_PREFLIGHT = new Set(['access-control-allow-headers', 'access-control-allow-methods']);

/** Bun sends a head and a small body in one write. This leaves room for the head. */
export const ONE_PIECE_BYTES = 12 * 1024;

/**
 * Elysia would copy the response to add those headers one by one, and would pass its body through a stream, which is a
 * large part of the cost of a small response. Responses with cookies are rare, so they are left to Elysia.
 */
export function completeResponse(
  { request, server, set }: Responding,
  body: Body,
  status: number,
  headers: Readonly<Record<string, string>>,
  paid?: PaidBody,
): Response {
  const isHead = request.method === 'HEAD';
  const sent = isHead
    ? headOnly(body, headers)
    : withoutType(traced(body, { request, server }, paid), headers);
  if (set.headers['set-cookie'] !== undefined) return new Response(sent, { status, headers });
  const all: Record<string, string> = {};
  for (const name in set.headers) if (!ONLY_PREFLIGHT.has(name)) all[name] = String(set.headers[name]);
  Object.assign(all, headers);
  set.headers = {};
  return new Response(sent, { status, headers: all });
}

/** For a response without body and length, Bun would send `Content-Length: 0`, which the upstream did not send. */
function headOnly(body: Body, headers: Readonly<Record<string, string>>): Body {
  return body === null && headers['content-length'] === undefined ? streamOf(new Uint8Array()) : body;
}

/** For a complete body without a type, Bun would send `application/octet-stream`, which the upstream did not send. */
function withoutType(body: Body, headers: Readonly<Record<string, string>>): Body {
  return body instanceof Uint8Array && headers['content-type'] === undefined ? streamOf(body) : body;
}

function traced(body: Body, connection: Connection, paid?: PaidBody): Body {
  if (body instanceof ReadableStream) return observedBody(body, connection, paid);
  const trace = traceOf(connection.request);
  trace.bytes = body?.byteLength ?? 0;
  return body && trace.bytes > ONE_PIECE_BYTES ? observedBody(streamOf(body), connection) : body;
}

/**
 * Bun sends a large body that is in memory with a system call for every part of every header, and then waits for
 * delayed acknowledgements of the client. It does neither for a stream.
 */
function streamOf(bytes: Uint8Array<ArrayBuffer>): ByteStream {
  return new ReadableStream(
    {
      start(controller) {
        controller.enqueue(bytes);
        controller.close();
      },
    },
    // Bun buffers this much before it sends. A small body ends within the buffer, so it keeps its Content-Length.
    { highWaterMark: ONE_PIECE_BYTES + 1 },
  );
}
