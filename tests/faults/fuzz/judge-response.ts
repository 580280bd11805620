/** Judges the responses to a request: status, envelope, headers, and that nothing in them belongs to somebody else. */

import type { HeaderLine, ParsedResponse } from '../../support/raw-http.ts';
import { ORIGIN } from '../../support/world.ts';
import { markersIn } from './choices.ts';
import type { FuzzRequest } from './grammar.ts';
import { NEVER_PASSED, TOKEN_PREFIXES, UPSTREAM_BODY } from './responses.ts';

/** With a marker in the place of the placeholder. */
export interface SentRequest extends FuzzRequest {
  readonly marker: string;
}

export interface Exchange {
  readonly responses: readonly ParsedResponse[];
  /** What followed the last complete response. */
  readonly rest: string;
  readonly end: 'responded' | 'closed' | 'silent';
}

const ENVELOPE = /^\{"error":\{"message":"(?:[^"\\]|\\.)+"\}\}$/;
/** What Bun itself refuses before the gateway sees it, without a body. */
const BARE = new Set([400, 413, 414, 417, 431, 501, 505]);
const COOKIE = /^svc_music_(?:access|refresh)=[^;]*; Path=\/; Max-Age=\d+; Secure; HttpOnly; SameSite=Lax$/;

/** @returns what is wrong with the exchange; undefined when nothing is */
export function problemWithExchange(
  request: SentRequest,
  { responses, rest, end }: Exchange,
  upstreamHost: string,
): string | undefined {
  // A response is lost when the upstream dies within its own.
  const mayBeLost = request.bytes.includes('.dies');
  if (request.isFramed && end !== 'responded' && !mayBeLost)
    return `a complete request got no response (${end})`;
  if (rest !== '' && !rest.startsWith('HTTP/1.1 ') && end === 'responded')
    return 'stray bytes after the response';
  const received = responses.map(({ bytes }) => bytes).join('') + rest;
  const stranger = markersIn(received).find((marker) => marker !== request.marker);
  if (stranger !== undefined) return `the response belongs to another request (${stranger})`;
  const problems = responses.map((each) => problemWithResponse(each, request, upstreamHost));
  return problems.find((problem) => problem !== undefined);
}

function problemWithResponse(response: ParsedResponse, request: SentRequest, upstreamHost: string) {
  const { status, headers, body } = response;
  if (status === 500) return 'status 500';
  const isBare = status >= 400 && body === '' && headerOf(headers, 'x-content-type-options') === '';
  if (isBare) return BARE.has(status) ? undefined : `a bare ${status}`;
  return (
    problemWithHeaders(headers, request, upstreamHost) ?? problemWithBody(response, request, upstreamHost)
  );
}

function headerOf(lines: readonly HeaderLine[], name: string): string {
  return lines.flatMap(([each, value]) => (each === name ? value : [])).join();
}

function problemWithHeaders(headers: readonly HeaderLine[], { mayPass }: SentRequest, upstreamHost: string) {
  const problem = headers.map((line) => problemWithHeader(line, upstreamHost)).find(Boolean);
  const allowed = headerOf(headers, 'access-control-allow-origin');
  if (allowed !== '' && (allowed !== ORIGIN || !mayPass)) return `the origin ${allowed} is allowed`;
  return headerOf(headers, 'x-content-type-options') === 'nosniff' ? problem : 'no nosniff';
}

function problemWithHeader([name, value]: HeaderLine, upstreamHost: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
  if (/[\x00-\x08\x0a-\x1f\x7f]/.test(value)) return `${name} has control characters`;
  if (name === 'set-cookie' ? !COOKIE.test(value) : holdsToken(value)) return `${name}: ${value}`;
  if (value.includes(upstreamHost)) return `the upstream's address in ${name}`;
  return value.includes(NEVER_PASSED) ? `the upstream's ${name} reached the client` : undefined;
}

function problemWithBody({ status, body }: ParsedResponse, request: SentRequest, upstreamHost: string) {
  if (holdsToken(body)) return 'a token in the body';
  const mayBeEmpty = request.bytes.startsWith('HEAD ') || status < 400;
  if (!mayBeEmpty && !body.startsWith(UPSTREAM_BODY)) {
    if (!ENVELOPE.test(body)) return `${status} without the envelope`;
    if (body.includes(upstreamHost)) return "the upstream's address in an error";
  }
  // Only health and preflights may succeed without an allowed origin.
  if (request.mayPass || status >= 400 || body.includes('"status":"ok"')) return undefined;
  const mayBe = /^OPTIONS |^HEAD [^ ]*\/api\/health/.test(request.bytes);
  return mayBe ? undefined : `${status} without an allowed Origin`;
}

function holdsToken(text: string): boolean {
  return TOKEN_PREFIXES.some((prefix) => text.includes(prefix));
}
