/** Judges what came back for a request: status, envelope, headers, and that nothing in it is somebody else's. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { ORIGIN } from '../../support/world.ts';
import { type Answer, headerOf } from './answer-reader.ts';
import type { Exchange } from './connection.ts';
import type { FuzzRequest } from './fuzz-request.ts';
import { markersIn } from './marker.ts';
import { TOKEN_PREFIXES, UPSTREAM_BODY } from './upstream-answers.ts';

const Envelope = Type.Object(
  { error: Type.Object({ message: Type.String({ minLength: 1 }) }, { additionalProperties: false }) },
  { additionalProperties: false },
);
/** What Bun itself refuses before the gateway sees it, without a body. */
const BARE = new Set([400, 413, 414, 417, 431, 501, 505]);
const COOKIE = /^svc_music_(?:access|refresh)=[^;]*; Path=\/; Max-Age=\d+; Secure; HttpOnly; SameSite=Lax$/;

export function isBare(answer: Answer): boolean {
  return (
    answer.status >= 400 && answer.body === '' && headerOf(answer, 'x-content-type-options') === undefined
  );
}

/** What is wrong with the exchange; undefined when nothing is. */
export function problemWithExchange(
  request: FuzzRequest,
  exchange: Exchange,
  seed: number,
): string | undefined {
  const { answers, rest, end } = exchange;
  if (request.isFramed && end !== 'answered' && !mayBeLost(request, exchange)) {
    return `a complete request was not answered (${end})`;
  }
  if (rest !== '' && !rest.startsWith('HTTP/1.1 ') && end === 'answered')
    return `stray bytes after the answer: ${JSON.stringify(rest.slice(0, 200))}`;
  const received = answers.map(({ bytes }) => bytes).join('') + rest;
  const stranger = markersIn(received, seed).find(
    (marker) => !request.bytes.includes(marker) && marker !== request.marker,
  );
  if (stranger !== undefined) return `the answer belongs to another request (${stranger})`;
  for (const answer of answers) {
    const problem = problemWithAnswer(answer, request);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** When the upstream dies in mid-answer, or an early answer is reset away by what was still being sent. */
function mayBeLost({ bytes, cuts }: FuzzRequest, { end }: Exchange): boolean {
  return bytes.includes('.dies') || (end === 'closed' && cuts.length > 0);
}

function problemWithAnswer(answer: Answer, request: FuzzRequest): string | undefined {
  if (answer.status === 500) return 'status 500';
  if (isBare(answer)) return BARE.has(answer.status) ? undefined : `a bare ${answer.status}`;
  return (
    problemWithHeaders(answer, request) ??
    problemWithBody(answer, request) ??
    (isUnearned(answer, request) ? `${answer.status} without an allowed Origin` : undefined)
  );
}

function problemWithHeaders(answer: Answer, request: FuzzRequest): string | undefined {
  for (const [name, value] of answer.headers) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
    if (/[\x00-\x08\x0a-\x1f\x7f]/.test(value)) return `${name} has control characters`;
    if (name === 'set-cookie' && !COOKIE.test(value)) return `Set-Cookie: ${value}`;
    if (name !== 'set-cookie' && holdsToken(value)) return `a token in ${name}`;
  }
  const allowed = headerOf(answer, 'access-control-allow-origin');
  if (allowed !== undefined && (allowed !== ORIGIN || !request.mayPass))
    return `Access-Control-Allow-Origin: ${allowed}`;
  if (headerOf(answer, 'x-content-type-options') !== 'nosniff') return 'no nosniff';
  return undefined;
}

function problemWithBody({ status, body }: Answer, { bytes }: FuzzRequest): string | undefined {
  if (holdsToken(body)) return 'a token in the body';
  const mayBeEmpty = bytes.startsWith('HEAD ') || status < 400;
  if (mayBeEmpty || body.startsWith(UPSTREAM_BODY)) return undefined;
  return isEnvelope(body)
    ? undefined
    : `${status} without the envelope: ${JSON.stringify(body.slice(0, 200))}`;
}

function isEnvelope(body: string): boolean {
  try {
    return Value.Check(Envelope, JSON.parse(Buffer.from(body, 'latin1').toString()));
  } catch {
    return false;
  }
}

/** Only health and preflights may be answered well without an allowed origin. */
function isUnearned({ status, body }: Answer, { mayPass, kind, bytes }: FuzzRequest): boolean {
  if (mayPass || status >= 400) return false;
  const isHealth =
    body.includes('"status":"ok"') || (status === 200 && /^HEAD [^ ]*\/api\/health/.test(bytes));
  return !isHealth && !(kind === 'mutated' ? /OPTIONS/i.test(bytes) : bytes.startsWith('OPTIONS '));
}

function holdsToken(text: string): boolean {
  return TOKEN_PREFIXES.some((prefix) => text.includes(prefix));
}
