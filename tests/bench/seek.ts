/** How long a listener far away waits for sound after a seek: to the first byte and to the last of a range. */

import type { Contender } from './contenders.ts';
import { NEEDED_FOR_DELAY, openDelayLine } from './delay-line.ts';
import { load } from './load.ts';
import { OTHER_CORE, type Place, spawnOn, start } from './processes.ts';
import { SEEK_BYTES, SEEK_ROW } from './rows.ts';
import { number, quantile } from './statistics.ts';

const ROUND_TRIP_MS = 80;
const LISTENERS = 40;

export const SEEK = {
  id: 'seek',
  title: `A seek at a round trip of ${ROUND_TRIP_MS} ms: a range of 48 KB on a connection that was idle for two seconds`,
  columns: ['', 'first byte after ms, p50', 'p99', 'last byte after ms, p50', 'p99'],
  contenders: ['gateway', 'bare', 'floor', 'haproxy', 'nginx'],
  needs: [...NEEDED_FOR_DELAY, 'curl'],
  lines: measureSeek,
};

async function measureSeek(contender: Contender, place: Place, isQuick: boolean): Promise<string[][]> {
  await using line = await openDelayLine(ROUND_TRIP_MS / 2);
  await using running = await start(contender, { ...place, host: line.host });
  await load(SEEK_ROW, running.url, 1);
  const seeks = isQuick ? 2 : 5;
  const listeners = Array.from({ length: LISTENERS }, () => listen(line.onFarSide, running.url, seeks));
  const timings = (await Promise.all(listeners)).flat();
  const column = (name: 'firstMs' | 'lastMs') => {
    const values = timings.map((timing) => timing[name]);
    return [number(quantile(values, 0.5)), number(quantile(values, 0.99))];
  };
  return [[contender.title, ...column('firstMs'), ...column('lastMs')]];
}

/** Opens a connection with a first request, then seeks on it every two seconds: after such a pause the kernel sends slowly at first. */
async function listen(onFarSide: readonly string[], url: string, seeks: number) {
  const headers = Object.entries(SEEK_ROW.headers).flatMap(([name, value]) => [
    '--header',
    `${name}: ${value}`,
  ]);
  const format = '%{num_connects} %{http_code} %{size_download} %{time_starttransfer} %{time_total}\\n';
  const options = [
    '--silent',
    '--show-error',
    '--rate',
    '30/m',
    '--output',
    '/dev/null',
    '--write-out',
    format,
  ];
  const target = `${url}${SEEK_ROW.path}?[0-${seeks}]`;
  const curl = spawnOn(OTHER_CORE, [...onFarSide, 'curl', ...options, ...headers, target]);
  const [output, errors] = await Promise.all([curl.stdout.text(), curl.stderr.text()]);
  const [, ...lines] = output.trim().split('\n');
  if (lines.length !== seeks) throw new Error(`curl failed: ${output}${errors}`);
  return lines.map((line) => {
    const [connects, status, bytes, first, last] = line.split(' ').map(Number);
    const isSeek = connects === 0 && status === SEEK_ROW.status && bytes === SEEK_BYTES;
    if (!isSeek) throw new Error(`curl got another response, or on another connection: ${line}`);
    return { firstMs: Number(first) * 1000, lastMs: Number(last) * 1000 };
  });
}
