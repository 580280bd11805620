/** The 502 that a client gets for a call without a valid response. */

import { GatewayError } from '../http/errors.ts';
import type { MessageKey } from '../http/messages.ts';
import { proxyStatus } from '../http/proxy-status.ts';
import type { ProxyError } from '../record/request-record.ts';

export interface FailureTexts {
  readonly unreachable: MessageKey;
  readonly late: MessageKey;
  readonly invalid: MessageKey;
}

type Texts = Partial<FailureTexts> | undefined;

/** Names a failure of the gateway's own: the response was not valid HTTP, or there is no room for it. */
export function ownErrorOf({ status }: GatewayError): ProxyError {
  return status === 502 ? 'http_protocol_error' : 'connection_limit_reached';
}

/** The 502 of a call whose fetch has failed. */
export function failure(texts: Texts, cause: unknown, error: ProxyError): GatewayError {
  const { late, unreachable, invalid } = textsOf(texts);
  const isInvalid = error === 'http_response_content_coding';
  const text = error === 'http_response_timeout' ? late : isInvalid ? invalid : unreachable;
  return new GatewayError(502, text, { cause, headers: proxyStatus(error) });
}

/** The 502 of a call whose response is not what it must be. */
export function invalid(texts: Texts): GatewayError {
  return new GatewayError(502, textsOf(texts).invalid, { headers: proxyStatus('http_protocol_error') });
}

function textsOf(texts: Texts): FailureTexts {
  return {
    unreachable: 'upstreamUnreachable',
    late: 'upstreamTimeout',
    invalid: 'upstreamInvalid',
    ...texts,
  };
}
