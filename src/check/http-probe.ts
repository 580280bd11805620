/** Calls an HTTP server as the gateway would. */

import { errorCode } from '../gateway/http/error-summary.ts';
import type { ProxyError } from '../gateway/http/proxy-status.ts';
import { type CallName, RequestRecord } from '../gateway/record/request-record.ts';
import { Buffered } from '../gateway/upstream/body-modes.ts';
import { fetchUpstream } from '../gateway/upstream/fetch-upstream.ts';
import type { UpstreamResponse } from '../gateway/upstream/upstream-response.ts';
import { certificateProblem } from './certificate-problem.ts';
import { DEADLINE_MS } from './finding.ts';

export type Probed =
  | { readonly response: UpstreamResponse; readonly receivedAt: number }
  /** Says why there is no response, as the end of a sentence about the server. */
  | { readonly problem: string };

/** Never rejects. The response may have any status. */
export async function probe(name: CallName, url: string): Promise<Probed> {
  if (!URL.canParse(url)) return { problem: 'has no valid address' };
  const record = new RequestRecord(new Request(url));
  const headers = { accept: 'application/json' };
  const bodyMode = new Buffered();
  const call = { name, method: 'GET', url, headers, timeoutMs: DEADLINE_MS, bodyMode } as const;
  try {
    return { response: await fetchUpstream(call, record), receivedAt: Date.now() };
  } catch (error) {
    return { problem: failureText(error, record) };
  }
}

const FAILURES: Partial<Record<ProxyError, string>> = {
  connection_refused: 'does not accept connections: does it run there, and is the port right?',
  connection_terminated:
    'closes the connection without a response: is it http or https, and is the port right?',
  destination_ip_unroutable: 'cannot be reached from this network',
  dns_error: 'has a host name that is not found: correct it, or the DNS',
  http_response_timeout: `does not respond within ${DEADLINE_MS / 1000} seconds`,
  tls_certificate_error: 'has a certificate that is not accepted: renew it, or complete its chain',
  tls_protocol_error: 'does not speak TLS: is it https, and is the port right?',
};

/** Says why a call that has this record got no response. */
export function failureText(error: unknown, { calls }: RequestRecord): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const code = errorCode(cause);
  const outcome = calls.at(-1)?.outcome;
  const known = typeof outcome === 'string' && outcome !== 'client_gone' ? FAILURES[outcome] : undefined;
  return `${certificateProblem(code) ?? known ?? 'does not respond with valid HTTP'}${code && ` (${code})`}`;
}
