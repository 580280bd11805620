/** Judges the responses to a request: status, envelope, headers, and that nothing in them belongs to somebody else. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { ParsedResponse } from '../../support/raw-http.ts';
import { ORIGIN } from '../../support/world.ts';
import type { Exchange, SentRequest } from './exchange.ts';
import { markersIn } from './grammar/marker.ts';
import { joined, valuesOf } from './parsed-request.ts';
import { TOKEN_PREFIXES, UPSTREAM_BODY, type UpstreamResponse } from './upstream-responses.ts';

const Envelope = Type.Object(
  { error: Type.Object({ message: Type.String({ minLength: 1 }) }, { additionalProperties: false }) },
  { additionalProperties: false },
);
/** What Bun itself refuses before the gateway sees it, without a body. */
const BARE = new Set([400, 413, 414, 417, 431, 501, 505]);
const COOKIE = /^svc_music_(?:access|refresh)=[^;]*; Path=\/; Max-Age=\d+; Secure; HttpOnly; SameSite=Lax$/;
const HOP_BY_HOP = new Set([
  ...['keep-alive', 'proxy-authenticate', 'proxy-authentication-info', 'proxy-connection', 'te', 'trailer'],
  ...['upgrade', 'http2-settings'],
]);
/** The gateway sets these itself, so the upstream's must not be seen. */
const OWN = [
  'set-cookie',
  'access-control-allow-origin',
  'content-security-policy',
  'x-content-type-options',
];
/** The recording upstream sends these; they are on no list. */
const STRANGERS = ['server', 'via', 'refresh', 'alt-svc', 'clear-site-data', 'x-internal'];

export function isBare({ status, body, headers }: ParsedResponse): boolean {
  return status >= 400 && body === '' && joined(headers, 'x-content-type-options') === undefined;
}

/** Returns what is wrong with the exchange; undefined when nothing is. */
export function problemWithExchange(request: SentRequest, exchange: Exchange): string | undefined {
  const { responses, rest, end } = exchange;
  if (request.isFramed && end !== 'responded' && !mayBeLost(request, exchange)) {
    return `a complete request got no response (${end})`;
  }
  if (rest !== '' && !rest.startsWith('HTTP/1.1 ') && end === 'responded')
    return `stray bytes after the response: ${JSON.stringify(rest.slice(0, 200))}`;
  const received = responses.map(({ bytes }) => bytes).join('') + rest;
  const stranger = markersIn(received).find((marker) => marker !== request.marker);
  if (stranger !== undefined) return `the response belongs to another request (${stranger})`;
  return responses
    .map((response) => problemWithResponse(response, request))
    .find((problem) => problem !== undefined);
}

/** When the upstream dies within its response, or an early response is lost by a reset while more was being sent. */
function mayBeLost({ bytes, cuts }: SentRequest, { end }: Exchange): boolean {
  return bytes.includes('.dies') || (end === 'closed' && cuts.length > 0);
}

function problemWithResponse(response: ParsedResponse, request: SentRequest): string | undefined {
  if (response.status === 500) return 'status 500';
  if (isBare(response)) return BARE.has(response.status) ? undefined : `a bare ${response.status}`;
  return (
    problemWithHeaders(response, request) ??
    problemWithBody(response, request) ??
    (isUnearned(response, request) ? `${response.status} without an allowed Origin` : undefined)
  );
}

function problemWithHeaders({ headers }: ParsedResponse, request: SentRequest): string | undefined {
  for (const [name, value] of headers) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
    if (/[\x00-\x08\x0a-\x1f\x7f]/.test(value)) return `${name} has control characters`;
    if (name === 'set-cookie' && !COOKIE.test(value)) return `Set-Cookie: ${value}`;
    if (name !== 'set-cookie' && holdsToken(value)) return `a token in ${name}`;
  }
  const [allowed] = valuesOf(headers, 'access-control-allow-origin');
  if (allowed !== undefined && (allowed !== ORIGIN || !request.mayPass))
    return `Access-Control-Allow-Origin: ${allowed}`;
  return joined(headers, 'x-content-type-options') === 'nosniff' ? undefined : 'no nosniff';
}

function problemWithBody({ status, body }: ParsedResponse, { bytes }: SentRequest): string | undefined {
  if (holdsToken(body)) return 'a token in the body';
  const mayBeEmpty = bytes.startsWith('HEAD ') || status < 400;
  if (mayBeEmpty || body.startsWith(UPSTREAM_BODY) || isEnvelope(body)) return undefined;
  return `${status} without the envelope: ${JSON.stringify(body.slice(0, 200))}`;
}

function isEnvelope(body: string): boolean {
  try {
    return Value.Check(Envelope, JSON.parse(Buffer.from(body, 'latin1').toString()));
  } catch {
    return false;
  }
}

/** Only health and preflights may succeed without an allowed origin. */
function isUnearned({ status, body }: ParsedResponse, { mayPass, kind, bytes }: SentRequest): boolean {
  if (mayPass || status >= 400) return false;
  const isHealth =
    body.includes('"status":"ok"') || (status === 200 && /^HEAD [^ ]*\/api\/health/.test(bytes));
  return !isHealth && !(kind === 'mutated' ? /OPTIONS/i.test(bytes) : bytes.startsWith('OPTIONS '));
}

function holdsToken(text: string): boolean {
  return TOKEN_PREFIXES.some((prefix) => text.includes(prefix));
}

/** What no response may carry, whatever the request was. */
export function problemWithLeaks(
  { status, headers, body }: ParsedResponse,
  upstreamHost: string,
  fromUpstream: readonly UpstreamResponse[],
): string | undefined {
  const telling = headers.find(([, value]) => value.includes(upstreamHost));
  if (telling) return `the upstream's address in ${telling[0]}`;
  if (status >= 400 && !body.startsWith(UPSTREAM_BODY) && body.includes(upstreamHost))
    return "the upstream's address in an error";
  const hop = headers.find(([name]) => HOP_BY_HOP.has(name));
  if (hop) return `${hop[0]} passed, although it is hop-by-hop`;
  const connection = joined(headers, 'connection')?.toLowerCase() ?? 'close';
  if (connection !== 'close' && connection !== 'keep-alive') return `Connection: ${connection} at the client`;
  const written = fromUpstream.flatMap((response) => ('dies' in response ? [] : response.headers));
  const leaked = [...OWN, ...STRANGERS].find((name) => {
    const passed = valuesOf(headers, name);
    return valuesOf(written, name).some((value) => passed.includes(value));
  });
  return leaked && `the upstream's ${leaked} reached the client`;
}
