/** The requests that several scenarios send, and the connection that they use. */

import { type ParsedResponse, parseResponses, type RawConnection } from '../../support/raw-http.ts';
import { ORIGIN } from '../../support/world.ts';

export interface ClientRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export const PROXY = '/api/upstream/v1';

export function signedIn(
  cookie: string,
  method: string,
  path: string,
  json?: unknown,
  headers: Readonly<Record<string, string>> = {},
): ClientRequest {
  const contentType = json === undefined ? {} : { 'content-type': 'application/json' };
  const body = json === undefined ? {} : { body: JSON.stringify(json) };
  return { method, path, headers: { origin: ORIGIN, cookie, ...contentType, ...headers }, ...body };
}

/** @param prompt tells the upstream what to do: `at once`, `in pieces`, `refuse` or `hold` */
export function generation(cookie: string, prompt: string, idempotencyKey: string): ClientRequest {
  const order = { model: 'composer-1', prompt, music_length_ms: 30_000 };
  return signedIn(cookie, 'POST', '/api/music/generate', order, { 'idempotency-key': idempotencyKey });
}

export function bytesOf({ method, path, headers = {}, body = '' }: ClientRequest): string {
  const length = body ? { 'content-length': String(Buffer.byteLength(body)) } : {};
  const lines = Object.entries({ host: 'gateway.test', ...headers, ...length });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return `${method} ${path} HTTP/1.1\r\n${head}\r\n${body}`;
}

/**
 * Keeps the connection.
 *
 * @param onPart called when a part of the response has arrived
 * @throws Error when the connection closes before the response is complete, or the response is malformed
 */
export async function exchange(
  connection: RawConnection,
  request: ClientRequest,
  onPart = () => {},
): Promise<ParsedResponse> {
  connection.received = '';
  await connection.send(bytesOf(request));
  for (;;) {
    const { responses, rest } = parseResponses(connection.received, false);
    const [response] = responses;
    if (response && rest) throw new Error('bytes after the end of the response');
    if (response) return response;
    if (connection.isClosed) throw new Error('closed before the response was complete');
    if (connection.received) onPart();
    await connection.changed(300_000);
  }
}
