/** What must hold for every response and every call to the upstream, however odd the request. */

import type { ParsedResponse } from '../../support/raw-http.ts';
import { ORIGIN } from '../../support/world.ts';
import type { FuzzRequest } from './requests.ts';
import { type Call, UPSTREAM_BODY } from './upstream.ts';

/** With a marker in the place of the placeholder. */
export interface SentRequest extends FuzzRequest {
  readonly marker: string;
}

/** Each marker once. They trace a call or a response to its request. */
export function markersIn(text: string): string[] {
  return [...new Set(text.match(/m\d{12}m/g))];
}

const ENVELOPE = /^\{"error":\{"message":"(?:[^"\\]|\\.)+"\}\}$/;
/** What Bun itself refuses before the gateway sees it, without a body. */
const BARE = new Set([400, 413, 414, 417, 431, 501, 505]);
const COOKIE = /^svc_music_(?:access|refresh)=[^;]*; Path=\/; Max-Age=\d+; Secure; HttpOnly; SameSite=Lax$/;
/** No token may ever reach a browser outside of a cookie. */
const TOKEN = /(?:acc|ref|idt)\.m/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROL = /[\x00-\x08\x0a-\x1f\x7f]/;

/** @param rest what followed the last complete response */
export function problemWithResponses(
  responses: readonly ParsedResponse[],
  rest: string,
  request: SentRequest,
  upstreamHost: string,
): string | undefined {
  // A response is lost when the upstream dies within its own.
  const isLost = request.isFramed && responses.length === 0 && !request.bytes.includes('.dies');
  const isStray = rest !== '' && responses.length > 0 && !rest.startsWith('HTTP/1.1 ');
  const problems = responses.map((each) => problemWithResponse(each, request, upstreamHost));
  return broken([isLost, 'no response'], [isStray, 'stray bytes']) ?? problems.find(Boolean);
}

function problemWithResponse(
  { status, headers, body, bytes }: ParsedResponse,
  { bytes: sent, mayPass, marker }: SentRequest,
  upstreamHost: string,
): string | undefined {
  const values = (name: string) => headers.flatMap(([each, value]) => (each === name ? value : []));
  const isBare = status >= 400 && body === '' && values('x-content-type-options').length === 0;
  if (isBare) return BARE.has(status) ? undefined : `a bare ${status}`;
  const plain = headers.flatMap(([name, value]) => (name === 'set-cookie' ? [] : value)).join('\n');
  const isOwnError = status >= 400 && !sent.startsWith('HEAD ') && !body.startsWith(UPSTREAM_BODY);
  // Only health and preflights may succeed without an allowed origin.
  const isOpen = body.includes('"status":"ok"') || /^OPTIONS |^HEAD [^ ]*\/api\/health/.test(sent);
  return broken(
    [status === 500, 'status 500'],
    [markersIn(bytes).some((each) => each !== marker), 'the response belongs to another request'],
    [values('x-content-type-options').join() !== 'nosniff', 'no nosniff'],
    [values('access-control-allow-origin').some((each) => each !== ORIGIN || !mayPass), 'an allowed origin'],
    [headers.some(([, value]) => CONTROL.test(value)), 'control characters in a header'],
    [values('set-cookie').some((each) => !COOKIE.test(each)), 'a cookie that is not of the gateway'],
    [TOKEN.test(plain + body), 'a token outside of a cookie'],
    [plain.includes(upstreamHost), "the upstream's address in a header"],
    [isOwnError && !ENVELOPE.test(body), `${status} without the envelope`],
    [isOwnError && body.includes(upstreamHost), "the upstream's address in an error"],
    [status < 400 && !mayPass && !isOpen, `${status} without an allowed Origin`],
  );
}

const TOKEN_ENDPOINT = '/idp/oauth/token';
const OPEN_TARGETS = [TOKEN_ENDPOINT, '/base/v1/auth/idp', '/base/v1/auth/refresh'];
const OWN_TARGETS = [...OPEN_TARGETS, '/base/v1/auth/logout'];
const OWN_BODY = /^\{"(?:access|refresh)_token":"[^"]*(?:\\.[^"]*)*"\}$/;
const PUBLIC = /^\/base\/v1\/music\/public\/[A-Za-z0-9\-._~]+(?:\/content)?$/;
const HEADERS = new Set(
  `host connection user-agent content-length transfer-encoding authorization via traceparent tracestate x-request-id
  accept accept-language accept-encoding content-type content-encoding cache-control pragma idempotency-key range
  if-range if-match if-none-match if-modified-since if-unmodified-since`.split(/\s+/),
);

/** @param owner the request with its marker, as far as the call has one */
export function problemWithCall(call: Call, owner: SentRequest | undefined): string | undefined {
  const { method, target, headers, body } = call;
  const matches = (name: string, pattern: RegExp) => pattern.test(headers.get(name) ?? '');
  const isOwn = OWN_TARGETS.includes(target);
  const isToken =
    target === TOKEN_ENDPOINT ? matches('content-type', /^application\/x-www-form/) : OWN_BODY.test(body);
  const isJson = target === TOKEN_ENDPOINT || matches('content-type', /^application\/json/);
  const isOpen = OPEN_TARGETS.includes(target) || (method === 'GET' && PUBLIC.test(target));
  const stranger = [...headers.keys()].find((name) => !HEADERS.has(name));
  const markers = markersIn([target, ...headers.values(), body].join('\n'));
  return broken(
    [!/^(?:GET|HEAD|POST|PUT|PATCH|DELETE)$/.test(method), `method ${method}`],
    [stranger !== undefined, `header ${stranger} was forwarded`],
    [!matches('x-request-id', /^[\w.~-]{1,64}$/), 'no sane request id'],
    [!matches('traceparent', /^\w\w-\w{32}-\w{16}-\w\w$/), 'no traceparent'],
    [!matches('connection', /^(?:keep-alive|close|)$/i), 'Connection was passed on'],
    [!matches('authorization', isOpen ? /^$/ : /^Bearer [\x21-\x7e]+$/), 'wrong credentials for the path'],
    [isOwn && !(method === 'POST' && isToken && isJson), 'a token endpoint, but no call of the gateway'],
    [!isOwn && !isPlainPath(target), 'a path that leads elsewhere'],
    [markers.length > 1, `requests are mixed: ${markers.join()}`],
    [markers.length > 0 && !owner, 'a call of no request in flight'],
    [owner && !owner.mayPass, 'a call for a request without an allowed Origin'],
  );
}

/** Written without regard to how the gateway judges a path: as by a server that decodes again and again. */
function isPlainPath(target: string): boolean {
  if (!target.startsWith('/base/v1/')) return false;
  let path = target.replace(/^\/base|\?.*/gs, '');
  if (path.includes('/;')) return false;
  for (let round = 0; round < 8; round++) {
    if (CONTROL.test(path) || /[\t\\]/.test(path)) return false;
    const text = Buffer.from(path, 'latin1').toString().normalize('NFKC').toLowerCase();
    const segments = text.split('/').map((segment) => segment.replace(/;.*/s, '').trim());
    const [, first] = segments.map((segment) => segment.replace(/[.\s]+$/, '')).filter((name) => name !== '');
    if (segments.includes('..') || segments.includes('.') || first === 'auth') return false;
    path = path.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
  return true;
}

/** What is wrong first. */
function broken(...rules: readonly (readonly [isBroken: unknown, problem: string])[]): string | undefined {
  return rules.find(([isBroken]) => isBroken)?.[1];
}
