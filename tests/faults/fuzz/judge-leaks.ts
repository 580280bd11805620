/** Judges what no response may carry, whatever the request was. */

import type { Answer } from './answer-reader.ts';
import { joined, valuesOf } from './header-lines.ts';
import type { Transaction } from './judge-relay.ts';
import { UPSTREAM_BODY } from './upstream-answers.ts';

const HOP_BY_HOP = new Set([
  ...['keep-alive', 'proxy-authenticate', 'proxy-authentication-info', 'proxy-connection', 'te', 'trailer'],
  ...['upgrade', 'http2-settings'],
]);
/** What the gateway says by itself, so that the upstream's may not be seen. */
const OWN = [
  'set-cookie',
  'access-control-allow-origin',
  'content-security-policy',
  'x-content-type-options',
];
/** The recording upstream sends these; they are on no list. */
const STRANGERS = ['server', 'via', 'refresh', 'alt-svc', 'clear-site-data', 'x-internal'];

export function problemWithLeaks(
  response: Answer,
  upstreamHost: string,
  transactions: readonly Transaction[],
): string | undefined {
  const { status, headers, body } = response;
  const telling = headers.find(([, value]) => value.includes(upstreamHost));
  if (telling) return `the upstream's address in ${telling[0]}`;
  if (status >= 400 && !body.startsWith(UPSTREAM_BODY) && body.includes(upstreamHost))
    return "the upstream's address in an error";
  const hop = headers.find(([name]) => HOP_BY_HOP.has(name));
  if (hop) return `${hop[0]} passed, although it is hop-by-hop`;
  const connection = joined(headers, 'connection')?.toLowerCase() ?? 'close';
  if (connection !== 'close' && connection !== 'keep-alive') return `Connection: ${connection} at the client`;
  for (const { answer } of transactions) {
    if ('dies' in answer) continue;
    const leaked = [...OWN, ...STRANGERS].find((name) => {
      const passed = valuesOf(headers, name);
      return valuesOf(answer.headers, name).some((value) => passed.includes(value));
    });
    if (leaked !== undefined) return `the upstream's ${leaked} reached the client`;
  }
  return undefined;
}
