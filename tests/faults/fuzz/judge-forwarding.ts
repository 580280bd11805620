/** Judges which headers of a request came with the call that it caused. */

import type { Call } from './call-reader.ts';
import { joined, valuesOf } from './header-lines.ts';
import { isOwnEndpoint } from './judge-call.ts';
import {
  hasForbiddenPath,
  hasTwinCookies,
  isProxied,
  isPublic,
  namedByConnection,
  type ReadRequest,
} from './request-reader.ts';

/** Those that pass as they are. */
const FORWARDED = [
  ...['accept', 'accept-language', 'accept-encoding', 'content-type', 'content-encoding', 'cache-control'],
  ...['pragma', 'idempotency-key', 'if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'],
  ...['if-range', 'range'],
];
/** What the gateway may say by itself on a call of its own. */
const OWN_VALUES = new Set(['application/json', 'identity']);

export function problemWithForwarding(call: Call, request: ReadRequest): string | undefined {
  if (hasTwinCookies(request) && !isPublic(request) && !request.target.startsWith('/api/auth/idp'))
    return 'two cookies of one session name caused a call';
  if (hasForbiddenPath(request)) return 'a path that must be 404 caused a call';
  return isProxied(request) && !isOwnEndpoint(call.target) ? problemWithProxied(call, request) : undefined;
}

function isPassedOn(name: string, { headers }: Call, request: ReadRequest): boolean {
  const sent = joined(request.headers, name);
  const passed = headers.get(name);
  if (sent === undefined || passed === undefined) return false;
  // The trace goes on with a span of the gateway's own.
  if (name === 'traceparent') return passed.slice(3, 35) === sent.slice(3, 35);
  return [...FORWARDED, 'tracestate'].includes(name) && passed === sent && !OWN_VALUES.has(sent);
}

function problemWithProxied(call: Call, request: ReadRequest): string | undefined {
  const { headers } = call;
  const leaked = namedByConnection(request).find((name) => isPassedOn(name, call, request));
  if (leaked !== undefined) return `${leaked} was forwarded, although Connection names it`;
  if (request.hasBody && (request.method === 'GET' || request.method === 'HEAD'))
    return `a ${request.method} with a body was forwarded`;
  if (!/(?:^|[ ,])1\.1 music-gateway$/.test(headers.get('via') ?? '')) return `Via: ${headers.get('via')}`;
  const isPart = passes(request, 'range');
  if (isPart && headers.get('accept-encoding') !== 'identity')
    return `Range with Accept-Encoding: ${headers.get('accept-encoding')}`;
  const lost = FORWARDED.find(
    (name) =>
      passes(request, name) &&
      headers.get(name) !== joined(request.headers, name) &&
      !(name === 'accept-encoding' && valuesOf(request.headers, 'range').length) &&
      !(name === 'content-type' && !request.hasBody),
  );
  return lost && `${lost} was not forwarded as it was`;
}

/** Sent once, with a value that nobody could quarrel with. */
function passes(request: ReadRequest, name: string): boolean {
  const [value, ...others] = valuesOf(request.headers, name);
  if (value === undefined || others.length || namedByConnection(request).includes(name)) return false;
  return /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value);
}
