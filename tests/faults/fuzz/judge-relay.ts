/** Judges a response beside what the upstream had said. */

import type { Answer } from './answer-reader.ts';
import type { Call } from './call-reader.ts';
import { joined, membersOf, valuesOf } from './header-lines.ts';
import { isOwnEndpoint } from './judge-call.ts';
import { readLinks } from './link-reader.ts';
import { expectedAddress } from './mapped-address.ts';
import { isProxied, type ReadRequest } from './request-reader.ts';
import type { UpstreamResponse } from './upstream-answers.ts';

/** A call and what it got. */
export interface Transaction {
  readonly call: Call;
  readonly answer: UpstreamResponse;
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
  response: Answer,
  request: ReadRequest,
  transactions: readonly Transaction[],
): string | undefined {
  const { call, answer } = transactions.at(-1) ?? {};
  // After a call that broke, or a 401 with a refresh that failed, the response is not the upstream's.
  if (!call || !answer || 'dies' in answer || answer.status === 401 || isOwnEndpoint(call.target))
    return undefined;
  if (isProxied(request)) return problemWithProxied(response, { call, answer });
  if (request.target.startsWith('/api/music/generate') && call.method === 'POST')
    return problemWithGeneration(response, answer);
  const isWhole =
    call.method === 'GET' && /^\/api\/(?:auth\/session|music\/models)(?:\?|$)/.test(request.target);
  return isWhole ? problemWithLimits(response, answer) : undefined;
}

function problemWithGeneration(response: Answer, answer: Relayed): string | undefined {
  const { status } = answer;
  const isNoTrack = (status >= 300 && status < 400) || [204, 205, 206].includes(status);
  if (isNoTrack)
    return response.status === 502 ? undefined : `${response.status} for a generation that got ${status}`;
  if (status >= 400 && response.status !== status)
    return `${response.status} for a generation that got ${status}`;
  return problemWithLimits(response, answer);
}

function problemWithLimits(response: Answer, answer: Relayed): string | undefined {
  if (answer.status < 400 || response.status !== answer.status) return undefined;
  return problemWithPassed(response, answer, LIMITS);
}

function problemWithProxied(response: Answer, { call, answer }: { call: Call; answer: Relayed }) {
  if (response.status !== answer.status) return `${response.status} for an upstream's ${answer.status}`;
  const host = call.headers.get('host') ?? '';
  return (
    problemWithNamed(response, answer) ??
    problemWithPassed(response, answer, PASSED) ??
    problemWithVary(response, answer, call.headers.has('authorization')) ??
    problemWithAddress('location') ??
    problemWithAddress('content-location') ??
    problemWithLinks(response, answer, host, (written) => expectedAddress(written, host, call.target))
  );

  function problemWithAddress(name: string): string | undefined {
    const [written, ...others] = said(answer, name);
    if (written === undefined || others.length) return undefined;
    const expected = expectedAddress(written, host, call.target);
    const [value] = valuesOf(response.headers, name);
    if (!expected || value === expected.value || (value === undefined && expected.mayBeMissing))
      return undefined;
    return `${name} ${written} became ${value}, not ${expected.value}`;
  }
}

/** Nothing when the upstream's Connection names it. */
function said({ headers }: Relayed, name: string): string[] {
  const isNamed = membersOf(headers, 'connection').some((member) => member.toLowerCase() === name);
  return isNamed ? [] : valuesOf(headers, name);
}

function problemWithNamed(response: Answer, answer: Relayed): string | undefined {
  // Of Vary and Link the members count.
  const leaked = PASSED.concat('cache-control', 'location', 'content-location').find((name) => {
    const isNamed = said(answer, name).length === 0;
    return (
      isNamed &&
      valuesOf(answer.headers, name).some((value) => valuesOf(response.headers, name).includes(value))
    );
  });
  return leaked && `${leaked} passed, although the upstream's Connection names it`;
}

function problemWithPassed(response: Answer, answer: Relayed, names: readonly string[]): string | undefined {
  const lost = names.find((name) => {
    const [value, ...others] = said(answer, name);
    return value !== undefined && !others.length && joined(response.headers, name) !== value;
  });
  return lost && `${lost} did not pass as it was`;
}

function problemWithVary(response: Answer, answer: Relayed, hasSession: boolean): string | undefined {
  const valid = said(answer, 'vary')
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
  response: Answer,
  answer: Relayed,
  host: string,
  expect: (written: string) => ReturnType<typeof expectedAddress>,
): string | undefined {
  const written = readLinks(said(answer, 'link').join(', '));
  const passed = readLinks(joined(response.headers, 'link') ?? '');
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
