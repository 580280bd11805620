/** Judges a response by what the upstream had responded, and by what the gateway must refuse by itself. */

import type { ParsedResponse } from '../../support/raw-http.ts';
import type { Call } from './call-parser.ts';
import { type Expected, expectedAddress, parseLinks } from './expected-addresses.ts';
import { isOwnEndpoint } from './judge-call.ts';
import {
  hasForbiddenPath,
  hasTwinCookies,
  isProxied,
  isPublic,
  joined,
  membersOf,
  type ParsedRequest,
  valuesOf,
} from './parsed-request.ts';
import type { UpstreamResponse } from './upstream-responses.ts';

/** A call and how the upstream responded. */
export interface Transaction {
  readonly call: Call;
  readonly said: UpstreamResponse;
}

type Relayed = Exclude<UpstreamResponse, { dies: unknown }>;

const LIMITS = ['retry-after', 'ratelimit', 'ratelimit-policy', 'ratelimit-remaining'];
/** Those that a proxied response has as the upstream wrote them. */
const PASSED = [
  ...['content-type', 'content-language', 'content-disposition', 'content-range', 'accept-ranges', 'etag'],
  ...['last-modified', 'expires', 'age', 'allow', 'x-generation-id', 'x-music-creation-id'],
  ...LIMITS,
  ...['x-ratelimit-remaining'],
];
/** A longer list may be cut or dropped. */
const MOST_LINKS = 20;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** `transactions` are all that the request has caused, in their order. */
export function problemWithRelay(
  response: ParsedResponse,
  request: ParsedRequest,
  transactions: readonly Transaction[],
): string | undefined {
  const { call, said } = transactions.at(-1) ?? {};
  // After a call that broke, or a 401 with a refresh that failed, the response is not the upstream's.
  if (!call || !said || 'dies' in said || said.status === 401 || isOwnEndpoint(call.target)) return undefined;
  if (isProxied(request)) return problemWithProxied(response, call, said);
  if (request.target.startsWith('/api/music/generate') && call.method === 'POST')
    return problemWithGeneration(response, said);
  const isBuffered =
    call.method === 'GET' && /^\/api\/(?:auth\/session|music\/models)(?:\?|$)/.test(request.target);
  return isBuffered ? problemWithLimits(response, said) : undefined;
}

function problemWithGeneration(response: ParsedResponse, relayed: Relayed): string | undefined {
  const { status } = relayed;
  const isNoTrack = (status >= 300 && status < 400) || [204, 205, 206].includes(status);
  if (isNoTrack)
    return response.status === 502 ? undefined : `${response.status} for a generation that got ${status}`;
  if (status >= 400 && response.status !== status)
    return `${response.status} for a generation that got ${status}`;
  return problemWithLimits(response, relayed);
}

function problemWithLimits(response: ParsedResponse, relayed: Relayed): string | undefined {
  if (relayed.status < 400 || response.status !== relayed.status) return undefined;
  return problemWithPassed(response, relayed, LIMITS);
}

function problemWithProxied(response: ParsedResponse, call: Call, relayed: Relayed): string | undefined {
  if (response.status !== relayed.status) return `${response.status} for an upstream's ${relayed.status}`;
  const host = call.headers.get('host') ?? '';
  return (
    problemWithNamed(response, relayed) ??
    problemWithPassed(response, relayed, PASSED) ??
    problemWithVary(response, relayed, call.headers.has('authorization')) ??
    problemWithAddress('location') ??
    problemWithAddress('content-location') ??
    problemWithLinks(response, relayed, host, (written) => expectedAddress(written, host, call.target))
  );

  function problemWithAddress(name: string): string | undefined {
    const [written, ...others] = linesOf(relayed, name);
    if (written === undefined || others.length) return undefined;
    const expected = expectedAddress(written, host, call.target);
    const [value] = valuesOf(response.headers, name);
    if (!expected || value === expected.value || (value === undefined && expected.mayBeMissing))
      return undefined;
    return `${name} ${written} became ${value}, not ${expected.value}`;
  }
}

/** Nothing when the upstream's Connection names it. */
function linesOf({ headers }: Relayed, name: string): string[] {
  const isNamed = membersOf(headers, 'connection').some((member) => member.toLowerCase() === name);
  return isNamed ? [] : valuesOf(headers, name);
}

function problemWithNamed(response: ParsedResponse, relayed: Relayed): string | undefined {
  // Of Vary and Link the members count.
  const leaked = PASSED.concat('cache-control', 'location', 'content-location').find((name) => {
    const isNamed = linesOf(relayed, name).length === 0;
    return (
      isNamed &&
      valuesOf(relayed.headers, name).some((value) => valuesOf(response.headers, name).includes(value))
    );
  });
  return leaked && `${leaked} passed, although the upstream's Connection names it`;
}

function problemWithPassed(
  response: ParsedResponse,
  relayed: Relayed,
  names: readonly string[],
): string | undefined {
  const lost = names.find((name) => {
    const [value, ...others] = linesOf(relayed, name);
    return value !== undefined && !others.length && joined(response.headers, name) !== value;
  });
  return lost && `${lost} did not pass as it was`;
}

function problemWithVary(
  response: ParsedResponse,
  relayed: Relayed,
  hasSession: boolean,
): string | undefined {
  const valid = linesOf(relayed, 'vary')
    .flatMap((value) => value.split(','))
    .map((member) => member.trim().toLowerCase())
    .filter((member) => TOKEN.test(member));
  const union = new Set(
    valid.includes('*') ? ['*'] : ['origin', ...(hasSession ? ['cookie'] : []), ...valid],
  );
  const members = membersOf(response.headers, 'vary').map((member) => member.toLowerCase());
  const isUnion = members.length === union.size && members.every((member) => union.has(member));
  return isUnion ? undefined : `Vary: ${members.join(', ')} instead of ${[...union].join(', ')}`;
}

function problemWithLinks(
  response: ParsedResponse,
  relayed: Relayed,
  host: string,
  expect: (written: string) => Expected | undefined,
): string | undefined {
  const written = parseLinks(linesOf(relayed, 'link').join(', '));
  const passed = parseLinks(joined(response.headers, 'link') ?? '');
  if (!passed) return 'Link is no list of links';
  if (!written || written.length > MOST_LINKS) return undefined;
  // How many of those at the client the members so far may have become.
  let taken = new Set([0]);
  for (const { target, parameters } of written) {
    // A target that is no address may pass; the upstream's address in a parameter may take its member with it.
    const { value, mayBeMissing } = expect(target) ?? { value: target, mayBeMissing: true };
    const tells = parameters.includes(host);
    const isNext = (at: number) =>
      passed[at]?.target === value && (tells || passed[at]?.parameters === parameters);
    const followed = [...taken].filter(isNext).map((at) => at + 1);
    taken = new Set(mayBeMissing || tells ? [...taken, ...followed] : followed);
    if (!taken.size) return `Link <${target}>${parameters}: no <${value}> in its place`;
  }
  return taken.has(passed.length) ? undefined : 'Link has a member that came from nowhere';
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']);

/** For requests from an allowed origin. That they caused no call is judged with the calls. */
export function problemWithRefusal(
  { status, body }: ParsedResponse,
  request: ParsedRequest,
): string | undefined {
  if (!METHODS.has(request.method)) return undefined;
  if (hasForbiddenPath(request)) return status === 404 ? undefined : `${status} for a path that must be 404`;
  if (status >= 400 && status < 500) return undefined;
  if (isReadWithBody(request)) return `${status} for a ${request.method} with a body`;
  if (!hasTwinCookies(request)) return undefined;
  const isAnonymous = isSessionCheck(request) && (body === '{"authenticated":false}' || body === '');
  return needsSession(request) && !isAnonymous ? `${status} for two cookies of one session name` : undefined;
}

function isReadWithBody(request: ParsedRequest): boolean {
  return request.hasBody && ['GET', 'HEAD'].includes(request.method) && isProxied(request);
}

function isSessionCheck({ target }: ParsedRequest): boolean {
  return target === '/api/auth/session';
}

function needsSession(request: ParsedRequest): boolean {
  return isProxied(request)
    ? !isPublic(request)
    : isSessionCheck(request) || /^\/api\/music\/(?:models|generate)$/.test(request.target);
}
