/** The gateway's only error class, and the envelope in which a client receives an error. */

import { type Message, messageKey, messages, preferredLanguage } from './messages.ts';

/** Bun closes the connection after the response. Otherwise it would continue to receive the body. */
export const CLOSE = { connection: 'close' };

interface Details {
  /** The internal reason; it is logged but never sent. */
  readonly cause?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A failure that is reported to the client: a status, a public text and the internal cause. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly status: number;
  /** From the catalogue, or a text that the upstream wrote for the user. */
  readonly text: Message | string;
  readonly headers: Readonly<Record<string, string>>;
  /** The name of the text, which identifies this failure in logs and metrics. */
  readonly reason: string;

  constructor(status: number, text: Message | string, { cause, headers = {} }: Details = {}) {
    const reason = typeof text === 'string' ? 'toldByUpstream' : messageKey(text);
    super(reason, { cause });
    this.reason = reason;
    this.status = status;
    this.text = text;
    this.headers = headers;
  }
}

/** @see RFC 9110 section 15.5.6: a 405 lists the allowed methods. */
export function methodNotAllowed(allowed: readonly string[]): GatewayError {
  return new GatewayError(405, messages.methodNotAllowed, { headers: { allow: allowed.join(', ') } });
}

/** `{"error":{"message":"..."}}`, in the language that the client prefers. */
export function errorEnvelope({ text, headers }: GatewayError, acceptLanguage: string | null) {
  const language = preferredLanguage(acceptLanguage);
  const [message, contentLanguage] =
    typeof text === 'string' ? [text, {}] : [text[language], { 'content-language': language }];
  return {
    body: new TextEncoder().encode(JSON.stringify({ error: { message } })),
    headers: {
      'content-type': 'application/json;charset=utf-8',
      'cache-control': 'no-store',
      ...contentLanguage,
      ...headers,
    },
  };
}
