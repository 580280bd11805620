/** Judges the responses to a request: status, envelope, headers, and that nothing in them belongs to somebody else. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { ParsedResponse } from '../../support/raw-http.ts';
import { ORIGIN } from '../../support/world.ts';
import { markersIn } from './choices.ts';
import type { Exchange, SentRequest } from './exchange.ts';
import { isOwnEndpoint, membersOf, parseRequest, valuesOf } from './judge-call.ts';
import type { Call } from './recording-upstream.ts';
import { TOKEN_PREFIXES, UPSTREAM_BODY, type UpstreamResponse } from './responses.ts';

/** A call and how the upstream responded. */
export interface Transaction {
  readonly call: Call;
  readonly said: UpstreamResponse;
}
type Relayed = Exclude<UpstreamResponse, { dies: unknown }>;

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
/** The gateway sets some of these itself, and the others are on no list: those of the upstream must not be seen. */
const NEVER_PASSED = [
  ...['set-cookie', 'access-control-allow-origin', 'content-security-policy', 'x-content-type-options'],
  ...['server', 'via', 'refresh', 'alt-svc', 'clear-site-data', 'x-internal'],
];
const LIMITS = [
  'retry-after',
  'ratelimit',
  'ratelimit-policy',
  'ratelimit-remaining',
  'x-ratelimit-remaining',
];
/** Those that a proxied response has as the upstream wrote them. */
const PASSED = [
  ...['content-type', 'content-language', 'content-disposition', 'content-range', 'accept-ranges', 'etag'],
  ...['last-modified', 'expires', 'age', 'allow', 'x-generation-id', 'x-music-creation-id', ...LIMITS],
];

export function isBare({ status, body, headers }: ParsedResponse): boolean {
  return status >= 400 && body === '' && valuesOf(headers, 'x-content-type-options').length === 0;
}

/** Returns what is wrong with the exchange by itself; undefined when nothing is. */
export function problemWithExchange(request: SentRequest, exchange: Exchange): string | undefined {
  const { responses, rest, end } = exchange;
  // A response is lost when the upstream dies within its own, or to a reset while more was being sent.
  const mayBeLost = request.bytes.includes('.dies') || (end === 'closed' && request.cuts.length > 0);
  if (request.isFramed && end !== 'responded' && !mayBeLost)
    return `a complete request got no response (${end})`;
  if (rest !== '' && !rest.startsWith('HTTP/1.1 ') && end === 'responded')
    return `stray bytes after the response: ${JSON.stringify(rest.slice(0, 200))}`;
  const received = responses.map(({ bytes }) => bytes).join('') + rest;
  const stranger = markersIn(received).find((marker) => marker !== request.marker);
  if (stranger !== undefined) return `the response belongs to another request (${stranger})`;
  return responses.map((each) => problemWithResponse(each, request)).find((problem) => problem !== undefined);
}

function problemWithResponse(response: ParsedResponse, request: SentRequest): string | undefined {
  const { status } = response;
  if (status === 500) return 'status 500';
  if (isBare(response)) return BARE.has(status) ? undefined : `a bare ${status}`;
  return problemWithHeaders(response, request) ?? problemWithBody(response, request);
}

function problemWithHeaders({ headers }: ParsedResponse, request: SentRequest): string | undefined {
  for (const [name, value] of headers) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
    if (/[\x00-\x08\x0a-\x1f\x7f]/.test(value)) return `${name} has control characters`;
    if (name === 'set-cookie' ? !COOKIE.test(value) : holdsToken(value)) return `${name}: ${value}`;
  }
  const allowed = valuesOf(headers, 'access-control-allow-origin').join();
  if (allowed !== '' && (allowed !== ORIGIN || !request.mayPass)) return `the origin ${allowed} is allowed`;
  return valuesOf(headers, 'x-content-type-options').join() === 'nosniff' ? undefined : 'no nosniff';
}

function problemWithBody({ status, body }: ParsedResponse, request: SentRequest): string | undefined {
  if (holdsToken(body)) return 'a token in the body';
  const mayBeEmpty = request.bytes.startsWith('HEAD ') || status < 400;
  if (!mayBeEmpty && !body.startsWith(UPSTREAM_BODY) && !isEnvelope(body))
    return `${status} without the envelope: ${JSON.stringify(body.slice(0, 200))}`;
  // Only health and preflights may succeed without an allowed origin.
  if (request.mayPass || status >= 400 || body.includes('"status":"ok"')) return undefined;
  const mayBe = request.kind === 'mutated' ? /OPTIONS|\/api\/health/i : /^OPTIONS |^HEAD [^ ]*\/api\/health/;
  return mayBe.test(request.bytes) ? undefined : `${status} without an allowed Origin`;
}

function isEnvelope(body: string): boolean {
  try {
    return Value.Check(Envelope, JSON.parse(Buffer.from(body, 'latin1').toString()));
  } catch {
    return false;
  }
}

function holdsToken(text: string): boolean {
  return TOKEN_PREFIXES.some((prefix) => text.includes(prefix));
}

/** What no response may carry, whatever the request was. */
export function problemWithLeaks(
  { status, headers, body }: ParsedResponse,
  upstreamHost: string,
  transactions: readonly Transaction[],
): string | undefined {
  const telling = headers.find(([, value]) => value.includes(upstreamHost));
  if (telling) return `the upstream's address in ${telling[0]}`;
  if (status >= 400 && !body.startsWith(UPSTREAM_BODY) && body.includes(upstreamHost))
    return "the upstream's address in an error";
  const hop = headers.find(([name]) => HOP_BY_HOP.has(name));
  if (hop) return `${hop[0]} passed, although it is hop-by-hop`;
  if (!/^(?:close|keep-alive)?$/i.test(valuesOf(headers, 'connection').join())) return 'Connection passed';
  const written = transactions.flatMap(({ said }) => ('dies' in said ? [] : said.headers));
  const leaked = NEVER_PASSED.find((name) => {
    const passed = valuesOf(headers, name);
    return valuesOf(written, name).some((value) => passed.includes(value));
  });
  return leaked && `the upstream's ${leaked} reached the client`;
}

/** Compares the response with that of the upstream. `transactions` are all that the request has caused, in order. */
export function problemWithRelay(
  response: ParsedResponse,
  request: SentRequest,
  transactions: readonly Transaction[],
): string | undefined {
  const parsed = parseRequest(request);
  const { call, said } = transactions.at(-1) ?? {};
  if (!parsed || valuesOf(parsed.headers, 'origin').join() !== ORIGIN) return undefined;
  // After a call that broke, or a 401 with a refresh that failed, the response is not the upstream's.
  if (!call || !said || 'dies' in said || said.status === 401 || isOwnEndpoint(call.target)) return undefined;
  if (parsed.target.startsWith('/api/upstream/v1/')) {
    const isSame = response.status === said.status;
    return isSame
      ? problemWithPassed(response, said, PASSED)
      : `${response.status} instead of ${said.status}`;
  }
  const isPassed = said.status >= 400 && response.status === said.status;
  return isPassed ? problemWithPassed(response, said, LIMITS) : undefined;
}

/** What the upstream's `Connection` names must be missing, and what it wrote once must be as it wrote it. */
function problemWithPassed({ headers }: ParsedResponse, said: Relayed, names: readonly string[]) {
  const named = membersOf(said.headers, 'connection');
  const wrong = names.find((name) => {
    const [value, ...others] = valuesOf(said.headers, name);
    const passed = valuesOf(headers, name).join(', ');
    return value !== undefined && !others.length && (passed === value) === named.includes(name);
  });
  return wrong && `${wrong} did not pass as it was, or passed although Connection names it`;
}
