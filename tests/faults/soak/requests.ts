/** The requests that several scenarios send. */

import { ORIGIN } from '../../support/world.ts';
import type { ClientRequest } from './connection.ts';

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
