/** A request with the response to it: what handlers know of a request, and how they respond. */

import type { Server } from 'bun';
import type { Context } from 'elysia';
import type { Permit } from '../admission/permit.ts';
import { type Body, isStreamed, ONE_WRITE_BYTES, type StreamedBody } from '../http/body.ts';
import type { Chunk } from '../http/body-reader.ts';
import { describeCause, stackFrame } from '../http/error-summary.ts';
import { CLOSE, errorEnvelope, type GatewayError } from '../http/errors.ts';
import { RequestRecord } from '../record/request-record.ts';
import { ObservedBody } from './observed-body.ts';

type ByteStream = ReadableStream<Chunk>;

/** The CORS plugin sets these on every response, but browsers read them only on a preflight. */
const ONLY_PREFLIGHT = new Set(['access-control-allow-headers', 'access-control-allow-methods']);

/**
 * After so many seconds of silence Bun closes a connection, or up to 4 s earlier. {@link Exchange.turnIdleTimeoutOff}
 * prevents it. Load balancers close theirs after 60 s; a request on one that the gateway closes is lost.
 */
export const IDLE_TIMEOUT_SECONDS = 75;

type ResponseSettings = Pick<Context['set'], 'headers'>;

const exchanges = new WeakMap<Request, Exchange>();

/** Path and query as the client wrote them: `new URL` would normalise them, and costs more. */
export function requestTarget(url: string): string {
  return url.slice(url.indexOf('/', url.indexOf('://') + 3));
}

export function requestPath(url: string): string {
  const target = requestTarget(url);
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}

/** The exchange that was made for the request when it arrived. */
export function exchangeOf(request: Request): Exchange {
  return exchanges.get(request) ?? new Exchange(request, null);
}

export class Exchange {
  readonly request: Request;
  readonly server: Pick<Server<unknown>, 'requestIP' | 'timeout' | 'port'> | null;
  readonly record: RequestRecord;
  /** @see RFC 6454 section 7 */
  readonly origin: string | null;
  /** What the request has reserved, until the exchange ends; undefined when that is nothing. */
  permit: Permit | undefined;
  /** Learns once that the exchange has ended. */
  observer: { ended(exchange: Exchange): void } | undefined;
  /** How many keep it open: its handler, the body of the response, and each {@link keepOpenUntil}. */
  #keepers = 1;
  #hasEnded = false;
  #set: ResponseSettings | undefined;
  #isIdleTimeoutOff = false;

  constructor(request: Request, server: Exchange['server']) {
    this.request = request;
    this.server = server;
    this.record = new RequestRecord(request);
    this.origin = request.headers.get('origin');
    exchanges.set(request, this);
  }

  /** Elysia's settings of the response, once it has them. Their headers go into whatever response is sent. */
  get set(): ResponseSettings {
    this.#set ??= { headers: {} };
    return this.#set;
  }

  set set(settings: ResponseSettings) {
    this.#set = settings;
  }

  /** Keeps the exchange open after its handler, until the work has settled. */
  keepOpenUntil(work: Promise<unknown>): void {
    this.#keepers++;
    const settled = () => this.letGo();
    void work.then(settled, settled);
  }

  /** One that keeps it open is done: the handler has responded or failed, for example. */
  letGo(): void {
    if (--this.#keepers === 0) this.end();
  }

  /** Gives everything back that the exchange has taken, whatever keeps it open. A second call does nothing. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.permit?.release();
    // The timeout belongs to the connection, which the client may use again.
    if (this.#isIdleTimeoutOff) this.server?.timeout(this.request, IDLE_TIMEOUT_SECONDS);
    this.observer?.ended(this);
  }

  /** Turns Bun's idle timeout off until the end. Its maximum is 255 s, and it also cuts off slow readers. */
  turnIdleTimeoutOff(): void {
    if (!this.#isIdleTimeoutOff) this.server?.timeout(this.request, 0);
    this.#isIdleTimeoutOff = true;
  }

  /**
   * Builds the response with the headers set so far; if they set cookies, Elysia merges them. Notes the body's size.
   *
   * @param drainMs see {@link ObservedBody}
   */
  respond(body: Body, status: number, headers: Readonly<Record<string, string>>, drainMs?: number): Response {
    const isHead = this.request.method === 'HEAD';
    const sent = isHead ? headOnly(body, headers) : withoutType(this.#counted(body, drainMs), headers);
    const all = Object.assign(this.#takeHeaders(), headers);
    // A cache that kept this response would give its session cookies to others.
    if (this.set.headers['set-cookie'] !== undefined) all['cache-control'] = 'no-store';
    return new Response(sent, { status, headers: all });
  }

  /** Responds with the error envelope, and notes the failure in the record. */
  fail(failure: GatewayError): Response {
    const { reason, cause, pool, status } = failure;
    this.record.reason = reason;
    this.record.pool = pool;
    if (cause !== undefined) this.record.cause = describeCause(cause);
    if (reason === 'internalError') this.record.cause = `${this.record.cause} ${stackFrame(cause)}`.trimEnd();
    const { body, headers } = errorEnvelope(failure, this.request.headers.get('accept-language'));
    // Bun treats everything after a CONNECT as the content of a tunnel, even after a refusal.
    const sent = this.request.method === 'CONNECT' ? { ...headers, ...CLOSE } : headers;
    return this.respond(body, status, sent);
  }

  /**
   * Takes the headers that Elysia would add. It would copy the response for that, and pass its body through a stream. With
   * cookies Elysia has to do it.
   */
  #takeHeaders(): Record<string, string> {
    const taken: Record<string, string> = {};
    const { headers } = this.set;
    if (headers['set-cookie'] !== undefined) return taken;
    for (const name in headers) if (!ONLY_PREFLIGHT.has(name)) taken[name] = String(headers[name]);
    this.set.headers = {};
    return taken;
  }

  #counted(body: Body, drainMs?: number): ByteStream | Chunk | null {
    if (isStreamed(body)) return this.#observed(body, drainMs);
    const bytes = body?.byteLength ?? 0;
    this.record.bytes = bytes;
    // Bun would send a larger body with a system call for every part of every header, and then wait for delayed
    // acknowledgements of the client. It does neither for a stream.
    if (!body || bytes <= ONE_WRITE_BYTES) return body;
    return this.#observed({ firstChunk: body, rest: null });
  }

  #observed(body: StreamedBody, drainMs?: number): ByteStream {
    const { request, server, permit } = this;
    if (!permit) throw new Error('a body is streamed only with a permit');
    const address = server?.requestIP(request);
    const connection = address ? { ...address, localPort: server?.port ?? 0 } : undefined;
    this.#keepers++;
    const client = { connection, onUpstreamEnd: () => this.letGo() };
    const { source } = new ObservedBody(body, this.record, permit.memory, client, drainMs);
    // Not `new`: where the DOM's types are loaded, as for the browser tests, they replace Bun's, which know this source.
    return Reflect.construct(ReadableStream, [source]);
  }
}

/** For a response without body and length, Bun would send `Content-Length: 0`, which the upstream did not send. */
function headOnly(body: Body, headers: Readonly<Record<string, string>>): ByteStream | Chunk | null {
  if (body instanceof Uint8Array) return body;
  return headers['content-length'] === undefined ? streamOf(new Uint8Array()) : null;
}

/** For a complete body without a type, Bun would send `application/octet-stream`, which the upstream did not send. */
function withoutType(body: ByteStream | Chunk | null, headers: Readonly<Record<string, string>>) {
  return body instanceof Uint8Array && headers['content-type'] === undefined ? streamOf(body) : body;
}

function streamOf(bytes: Chunk): ByteStream {
  return new ReadableStream(
    {
      start(controller) {
        controller.enqueue(bytes);
        controller.close();
      },
    },
    // Bun buffers this much before it sends. A small body ends within the buffer, so it keeps its Content-Length.
    { highWaterMark: ONE_WRITE_BYTES + 1 },
  );
}
