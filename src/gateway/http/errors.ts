/** The gateway's only error class, and the envelope in which a client receives an error. */

import { type MessageKey, messages, preferredLanguage } from './messages.ts';

/** Bun closes the connection after the response. Otherwise it would continue to receive the body. */
export const CLOSE = { connection: 'close' };

/** What is limited, as the metrics call it. */
export type PoolName =
  | 'identity_provider'
  | 'session'
  | 'sign_out'
  | 'read'
  | 'stream'
  | 'memory'
  | 'one_session'
  | 'sign_in_body'
  | 'order_body'
  | 'relayed_body';

interface Details {
  /** The internal reason; it is logged but never sent. */
  readonly cause?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Which limit has refused the request. */
  readonly pool?: PoolName;
  /** What the upstream wrote for the user, instead of the gateway's own text. */
  readonly upstreamText?: string | undefined;
}

/** A failure that is reported to the client: a status, a public text and the internal cause. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly status: number;
  readonly key: MessageKey;
  readonly upstreamText: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly pool: PoolName | undefined;

  constructor(status: number, key: MessageKey, { cause, headers = {}, pool, upstreamText }: Details = {}) {
    super(key, { cause });
    this.key = key;
    this.status = status;
    this.upstreamText = upstreamText;
    this.headers = headers;
    this.pool = pool;
  }

  /** Identifies this failure in logs and metrics. */
  get reason(): MessageKey | 'toldByUpstream' {
    return this.upstreamText === undefined ? this.key : 'toldByUpstream';
  }
}

/** @see RFC 9110 section 15.5.6: a 405 lists the allowed methods. */
export function methodNotAllowed(allowed: readonly string[]): GatewayError {
  return new GatewayError(405, 'methodNotAllowed', { headers: { allow: allowed.join(', ') } });
}

/** `{"error":{"message":"..."}}`, in the language that the client prefers. */
export function errorEnvelope({ key, upstreamText, headers }: GatewayError, acceptLanguage: string | null) {
  const language = preferredLanguage(acceptLanguage);
  const message = upstreamText ?? messages[language][key];
  return {
    body: new TextEncoder().encode(JSON.stringify({ error: { message } })),
    headers: {
      'content-type': 'application/json;charset=utf-8',
      'cache-control': 'no-store',
      ...(upstreamText === undefined && { 'content-language': language }),
      ...headers,
    },
  };
}
