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

interface Load extends Report {
  readonly refusedPercent: number;
}

const SCRIPT = new URL('wrk.lua', import.meta.url).pathname;
const MOST_SECONDS = 4;

/** @throws Error when a response has not the row's status, a connection breaks, or nothing arrives */
export async function load(row: Row, url: string, seconds = row.seconds ?? 0.5): Promise<Load> {
  const report = await runWrk(row, url, seconds);
  const { bytes = 0, broken, statusesAbove399: errors = 0 } = report ?? {};
  const refused = row.mayRefuse ? errors : 0;
  const responses = report?.requests ?? 0;
  const wrong = row.status > 399 ? responses - errors : errors - refused;
  if (wrong) throw new Error(`${row.id}: ${wrong} responses wrong`);
  if (broken) throw new Error(`${row.id}: ${broken} connections broken`);
  const requests = row.trackBytes ? bytes / row.trackBytes : responses - refused;
  if (report && requests > 0)
    return { ...report, requests, refusedPercent: refused && (refused / responses) * 100 };
  // On a busy machine it can be over before it has begun.
  if (seconds < MOST_SECONDS) return load(row, url, 2 * seconds);
  throw new Error(`${row.id}: no response within ${seconds} s`);
}

/** Undefined when it was interrupted before it began. */
async function runWrk(row: Row, url: string, seconds: number): Promise<Report | undefined> {
  const headers = Object.entries(row.headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const cookies = row.needsRefresh ? `${EXPIRED_COOKIES}-${crypto.randomUUID()}-` : '';
  const length = ['-t1', `-c${row.connections}`, `-d${Math.ceil(seconds)}s`, '--timeout', '20s'];
  const script = ['-s', SCRIPT, ...headers, url + row.path];
  const pauses = row.pauses ? 'pauses' : '';
  const wrk = spawnOn(OTHER_CORE, ['wrk', ...length, ...script, '--', row.body, cookies, pauses]);
  // wrk knows whole seconds only, but reports how long it ran when it is interrupted before.
  const timer = setTimeout(() => wrk.kill('SIGINT'), seconds * 1000);
  const [output, warnings] = await Promise.all([wrk.stdout.text(), wrk.stderr.text(), wrk.exited]);
  clearTimeout(timer);
  if (wrk.signalCode === 'SIGINT') return undefined;
  const json = /^RESULT (.*)$/m.exec(output)?.[1];
  if (json === undefined) throw new Error(`${row.id}: wrk failed: ${output}${warnings}`);
  return JSON.parse(json);
}
