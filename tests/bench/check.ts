/** Whether a contender does a row's work right; it is not timed unless it does. */

import { eventually } from '../support/eventually.ts';
import mapping from './mapping.json' with { type: 'json' };
import type { Running } from './processes.ts';
import { FOREIGN_ORIGIN, type Row } from './rows.ts';
import { ACCESS_TOKEN } from './upstream.ts';

/** A line with the method, the path or its route, and the status; the time, id, duration and bytes have many forms. */
const LOGGED = /^(?=.*"GET")(?=.*"\/api\/)(?=.*\b20[06]\b).*$/m;

/** Besides the status and the bytes: the headers of a response, and that only the allowed origin gets one. */
export type Check = 'headers' | 'origin';

/** @throws Error that says what is wrong */
export async function checkResponses(
  row: Row,
  { url, written }: Running,
  upstreamUrl: string,
  leavesOut: readonly Check[] = [],
): Promise<void> {
  const expect = (isRight: boolean, problem: string) => {
    if (!isRight) throw new Error(`${row.id}: ${problem}`);
  };
  const response = await send(row, url + row.path, row.headers);
  const bytes = await response.bytes();
  expect(response.status === row.status, `status ${response.status}, not ${row.status}`);
  if (row.setup === 'log')
    await eventually(() => LOGGED.test(written().output), `an access line in ${written().output}`, 2000);
  if (row.status === 403) return;

  const headerChecks = leavesOut.includes('headers') ? {} : expectedHeaders(row);
  for (const [name, pattern] of Object.entries(headerChecks)) {
    const value = response.headers.get(name) ?? '';
    expect(pattern.test(value), `${name} is "${value}"`);
  }

  const target = row.path.replace(mapping.proxyPrefix, '');
  const upstreamPath = new Map(Object.entries(mapping.paths)).get(row.path) ?? target;
  if (upstreamPath.startsWith('/v1/')) {
    const { range } = row.headers;
    const headers = { authorization: `Bearer ${ACCESS_TOKEN}`, ...(range ? { range } : {}) };
    const expected = await send(row, upstreamUrl + upstreamPath, headers);
    expect(Buffer.from(bytes).equals(await expected.bytes()), 'other bytes than the upstream sends');
  }

  if (leavesOut.includes('origin')) return;
  const { origin: _, ...others } = row.headers;
  for (const headers of [others, { ...others, origin: FOREIGN_ORIGIN }]) {
    const refusal = await send(row, url + row.path, headers);
    expect(refusal.status === 403, `status ${refusal.status}, not 403, without an allowed origin`);
    expect(refusal.headers.get('access-control-allow-origin') !== FOREIGN_ORIGIN, 'allows a foreign origin');
  }
}

function expectedHeaders({ status, path }: Row): Record<string, RegExp> {
  return {
    'access-control-allow-origin': new RegExp(`^${mapping.origin}$`),
    'access-control-allow-credentials': /^true$/,
    'access-control-expose-headers': /\bX-Generation-Id\b/i,
    'content-range': status === 206 ? /^bytes / : /^$/,
    vary: /\borigin\b/i,
    'x-content-type-options': /^nosniff$/,
    'x-generation-id': path === '/api/music/generate' ? /^generation-1$/ : /^$/,
    ...Object.fromEntries(mapping.hiddenHeaders.map((name) => [name, /^(?!.*(nginx\/|rack 7|upstream=1))/])),
  };
}

function send({ body }: Row, url: string, headers: Record<string, string>): Promise<Response> {
  const signal = AbortSignal.timeout(10_000);
  return fetch(url, { ...(body ? { method: 'POST', body } : {}), headers, decompress: false, signal });
}
