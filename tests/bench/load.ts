/** Load with wrk, mostly for half a second. */

import { OTHER_CORE, spawnOn } from './processes.ts';
import { EXPIRED_COOKIES, type Row } from './rows.ts';

/** What `wrk.lua` prints. */
interface Report {
  /** Of a track, the bytes divided by its size: those under way at the end count too. */
  readonly requests: number;
  readonly bytes: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly statusesAbove399: number;
  /** Connections that failed, broke, or waited too long. */
  readonly broken: number;
}

const SCRIPT = new URL('wrk.lua', import.meta.url).pathname;

/** @throws Error when a response has not the row's status, a connection fails, or nothing arrives */
export async function load(row: Row, url: string, seconds = row.seconds ?? 0.5) {
  const headers = Object.entries(row.headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const cookies = row.needsRefresh ? `${EXPIRED_COOKIES}-${crypto.randomUUID()}-` : '';
  const options = ['-t1', `-c${row.connections}`, '-d1h', '--timeout', '20s', '-s', SCRIPT, ...headers];
  const wrk = spawnOn(OTHER_CORE, [
    'wrk',
    ...options,
    url + row.path,
    '--',
    row.body,
    cookies,
    row.pauses ? 'pauses' : '',
  ]);
  // wrk knows whole seconds only, but reports what it has done when it is interrupted.
  const timer = setTimeout(() => wrk.kill('SIGINT'), seconds * 1000);
  const [output, warnings] = await Promise.all([wrk.stdout.text(), wrk.stderr.text()]);
  clearTimeout(timer);
  const json = /^RESULT (.*)$/m.exec(output)?.[1];
  if (json === undefined) throw new Error(`${row.id}: wrk failed: ${output}${warnings}`);
  const report: Report = JSON.parse(json);
  const { bytes, broken, statusesAbove399: errors } = report;
  const refused = row.mayRefuse ? errors : 0;
  const wrong = row.status > 399 ? report.requests - errors : errors - refused;
  if (wrong || broken) throw new Error(`${row.id}: ${wrong} responses wrong, ${broken} connections broken`);
  const requests = row.trackBytes ? bytes / row.trackBytes : report.requests - refused;
  if (requests === 0) throw new Error(`${row.id}: no response within ${seconds} s`);
  return { ...report, requests, refusedPercent: refused && (refused / report.requests) * 100 };
}
