/** What must hold for every response and every call to the upstream, however odd the request. */

import type { ParsedResponse } from '../../support/raw-http.ts';
import { ORIGIN } from '../../support/world.ts';
import type { FuzzRequest } from './requests.ts';
import { type Call, UPSTREAM_BODY } from './upstream.ts';

/** Each marker once. They trace a call or a response to its request. */
export function markersIn(text: string): string[] {
  return [...new Set(text.match(/m\d{12}m/g))];
}

const ENVELOPE = /^\{"error":\{"message":"(?:[^"\\]|\\.)+"\}\}$/;
/** What Bun itself refuses before the gateway sees it, without a body. */
const BARE = [400, 413, 414, 417, 431, 501, 505];
const COOKIE = /^svc_music_(?:access|refresh)=[^;]*; Path=\/; Max-Age=\d+; Secure; HttpOnly; SameSite=Lax$/;
/** No token may ever reach a browser outside of a cookie. */
const TOKEN = /(?:acc|ref|idt)\.m/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROL = /[\x00-\x08\x0a-\x1f\x7f]/;

/** Each rule, and whether it is broken. */
type Rules = Readonly<Record<string, boolean>>;

export function rulesOfResponse(
  { status, headers, body, bytes }: ParsedResponse,
  { bytes: sent, mayPass }: FuzzRequest,
  marker: string,
  upstreamHost: string,
): Rules {
  const values = (name: string) => headers.flatMap(([each, value]) => (each === name ? value : []));
  const isBare = status >= 400 && body === '' && values('x-content-type-options').length === 0;
  if (isBare) return { 'only Bun responds without a body': !BARE.includes(status) };
  const isOwnError = status >= 400 && !sent.startsWith('HEAD ') && !body.startsWith(UPSTREAM_BODY);
  const plain = headers.flatMap(([name, value]) => (name === 'set-cookie' ? [] : value)).join('\n');
  const readers = values('access-control-allow-origin');
  // Only health and preflights may succeed without an allowed origin.
  const isOpen = body.includes('"status":"ok"') || /^OPTIONS |^HEAD [^ ]*\/api\/health/.test(sent);
  return {
    'the status is not 500': status === 500,
    'it belongs to its request': markersIn(bytes).some((each) => each !== marker),
    'it has nosniff': values('x-content-type-options').join() !== 'nosniff',
    'no header has control characters': headers.some(([, value]) => CONTROL.test(value)),
    'it sets only the cookies of the gateway': values('set-cookie').some((each) => !COOKIE.test(each)),
    'a token is only in a cookie': TOKEN.test(plain + body),
    'it has no address of the upstream': (isOwnError ? plain + body : plain).includes(upstreamHost),
    'an error has the envelope': isOwnError && !ENVELOPE.test(body),
    'only an allowed origin reads it': readers.some((each) => each !== ORIGIN || !mayPass),
    'what must be refused is refused': status < 400 && !mayPass && !isOpen,
  };
}

const WITHOUT_TOKEN = /^\/idp\/oauth\/token$|^\/base\/v1\/auth\/(?:idp|refresh)$/;
const WITH_TOKEN = /^\/base\/v1\/(?:auth\/logout|me|models|music)$/;
const PUBLIC = /^\/base\/v1\/music\/public\/[A-Za-z0-9\-._~]+(?:\/content)?$/;
const HEADERS =
  `host connection user-agent content-length authorization via traceparent tracestate x-request-id accept
  accept-language accept-encoding content-type content-encoding cache-control pragma idempotency-key range if-range
  if-match if-none-match if-modified-since if-unmodified-since incremental last-event-id`.split(/\s+/);

/** @param owner the request with the call's marker, which is in flight */
export function rulesOfCall(
  { method, target, headers, isPlain }: Call,
  markers: readonly string[],
  owner: FuzzRequest | undefined,
): Rules {
  const matches = (name: string, pattern: RegExp) => pattern.test(headers.get(name) ?? '');
  // Only a proxied call has it, and only one of the gateway's own may lead to the tokens.
  const isProxied = headers.has('via');
  const isPublic = isProxied && method === 'GET' && PUBLIC.test(target);
  const isOpen = isPublic || (!isProxied && WITHOUT_TOKEN.test(target));
  const isOwn = isOpen || WITH_TOKEN.test(target);
  const credentials = isOpen ? /^$/ : /^Bearer [\x21-\x7e]+$/;
  return {
    'a call is plain HTTP': !isPlain,
    'its method is proxied': !/^(?:GET|HEAD|POST|PUT|PATCH|DELETE)$/.test(method),
    'it has listed headers alone': [...headers.keys()].some((name) => !HEADERS.includes(name)),
    'it has a sane request id': !matches('x-request-id', /^[\w.~-]{1,64}$/),
    'Connection is for one hop': !matches('connection', /^(?:keep-alive|close|)$/i),
    'it has credentials if its path needs them': !matches('authorization', credentials),
    'its path leads nowhere else': isProxied ? !isPlainPath(target) : !isOwn,
    'it belongs to one request': markers.length > 1,
    'its request is in flight, and not refused': markers.length > 0 && !owner?.mayPass,
  };
}

/** Joiners, direction marks, soft hyphens, variants and private use. */
const UNSEEN = /[\p{Cf}\p{Co}\p{Default_Ignorable_Code_Point}]/gu;

/** Written without regard to how the gateway judges a path: as by servers that decode, and perhaps drop, again and again. */
function isPlainPath(target: string): boolean {
  return target.startsWith('/base/v1/') && leadsNowhereElse(target, /$^/) && leadsNowhereElse(target, UNSEEN);
}

function leadsNowhereElse(target: string, dropped: RegExp): boolean {
  let path = target.replace(/\?.*/s, '');
  for (let round = 0; round < 8; round++) {
    path = path.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
    const kept = Buffer.from(path, 'latin1').toString().replace(dropped, '');
    path = Buffer.from(kept).toString('latin1');
  }
  const text = Buffer.from(path, 'latin1').toString().normalize('NFKC').toLowerCase();
  const names = text.split('/').map((segment) => segment.replace(/;.*/s, '').trim());
  const [, , first] = names.map((name) => name.replace(/[.\s]+$/, '')).filter((name) => name !== '');
  const leadsUp = names.includes('..') || names.includes('.');
  const isOdd = CONTROL.test(path) || /[\t\\]|\/;/.test(path);
  return !isOdd && !leadsUp && first !== 'auth';
}
