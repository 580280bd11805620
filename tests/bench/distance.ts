/**
 * What bounds of the kernel's socket buffers cost at a distance, and what they save. It sets them, so it needs a network
 * namespace of its own: `unshare --net bun tests/bench/distance.ts`, or with the names of the wanted tables behind it.
 */

import { readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { CONTENDERS } from './contenders.ts';
import { FAR_ADDRESS, openDelayLine } from './delay-line.ts';
import { OTHER_CORE, type Program, spawnOn, start } from './processes.ts';
import { GENERATE_ROW, PLAYED_ROW, type Row } from './rows.ts';
import { figure, number } from './statistics.ts';
import { markdown } from './table.ts';
import { startUpstream } from './upstream.ts';

const TABLES = { client: () => speedTable(SEND), upstream: () => speedTable(RECEIVE), stopped: stoppedTable };
const ROUND_TRIPS_MS = [80, 200];
const ROUNDS = 3;
const READERS = 20;
/** After so long without a change, the buffers of those who have stopped are full. */
const SETTLED_MS = 1500;
const LONG_BYTES = 40_000_000;
const LONG_PATH = PLAYED_ROW.path.replace(/[^/]+$/, 'long.bin');
const KiB = 1024;

interface Buffers {
  readonly sysctl: string;
  /** The least and the initial size, in KiB. */
  readonly first: readonly number[];
  readonly maximaKiB: readonly number[];
  readonly far: 'client' | 'upstream';
}
const SEND: Buffers = {
  ...{ sysctl: 'tcp_wmem', first: [4, 16], far: 'client' },
  maximaKiB: [64, 128, 256, 512, 4096],
};
const RECEIVE: Buffers = {
  ...{ sysctl: 'tcp_rmem', first: [4, 128], far: 'upstream' },
  maximaKiB: [256, 512, 1024, 32_768],
};
/** Maxima in KiB: of the send buffer, of the receive buffer. The last ones are this kernel's own. */
const PAIRS = [
  [64, 256],
  [128, 256],
  [128, 512],
  [256, 512],
  [512, 1024],
  [4096, 32_768],
] as const;

const gateway = CONTENDERS.find(({ id }) => id === 'gateway');
if (!gateway) throw new Error('there is no gateway among the contenders');
if (/^ *(?!lo:)\w+:/m.test(readFileSync('/proc/net/dev', 'utf8')))
  throw new Error('start it with unshare --net');
Bun.spawnSync(['ip', 'link', 'set', 'lo', 'up']);
Bun.spawnSync(['taskset', '-a', '-c', '-p', `${OTHER_CORE}`, `${process.pid}`]);
const folder = await mkdtemp(`${tmpdir()}/bench-`);
/** Cgroups of version 1 count what version 2 charges for sockets apart from the rest, once that has a limit. */
const cgroup = `/sys/fs/cgroup/memory/bench-${process.pid}`;
await mkdir(cgroup);
process.on('exit', () => {
  rmSync(folder, { recursive: true, force: true });
  rmdirSync(cgroup);
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
writeFileSync(`${cgroup}/memory.kmem.tcp.limit_in_bytes`, String(2 ** 33));
await Bun.write(`${folder}/files/long.bin`, new Uint8Array(LONG_BYTES));

const wanted = process.argv.slice(2);
for (const [name, table] of Object.entries(TABLES)) {
  if (!wanted.length || wanted.includes(name)) console.log(`## ${name}\n\n${markdown(await table())}\n`);
}
process.exit();

function bound({ sysctl, first }: Buffers, maximumKiB: number): void {
  const sizes = [...first.map((size) => Math.min(size, maximumKiB)), maximumKiB];
  writeFileSync(`/proc/sys/net/ipv4/${sysctl}`, sizes.map((size) => size * KiB).join(' '));
}

/** Mbit/s of one body of 10 MB on a new connection, the client or the upstream far away. */
async function speedTable(buffers: Buffers) {
  const cases = ROUND_TRIPS_MS.flatMap((roundTripMs) =>
    [GENERATE_ROW, PLAYED_ROW].map((row) => ({ roundTripMs, row })),
  );
  const lines: string[][] = [];
  for (const maximumKiB of buffers.maximaKiB) {
    bound(buffers, maximumKiB);
    const cells: string[] = [];
    for (const { roundTripMs, row } of cases) cells.push(await speed(buffers.far, roundTripMs, row));
    lines.push([`${maximumKiB} KB`, ...cells]);
  }
  const titles = cases.map(({ roundTripMs, row }) => `${row.title}, ${roundTripMs} ms`);
  return { columns: [`${buffers.sysctl} at most`, ...titles], lines };
}

async function speed(far: Buffers['far'], roundTripMs: number, row: Row): Promise<string> {
  await using line = await openDelayLine(roundTripMs / 2);
  const isUpstreamFar = far === 'upstream';
  const place = isUpstreamFar ? { host: FAR_ADDRESS, prefix: line.onFarSide } : undefined;
  await using upstream = await startUpstream(folder, place);
  await using running = await startGateway(upstream.url, line.host);
  const headers = Object.entries(row.headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const format = ['-w', '%{http_code} %{size_download} %{time_total}'];
  const options = ['-sS', '-m', '120', '-o', '/dev/null', ...format, ...headers];
  const body = row.body ? ['--data-raw', row.body] : [];
  const rates: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const command = ['curl', ...options, ...body, running.url + row.path];
    const curl = spawnOn(OTHER_CORE, isUpstreamFar ? command : [...line.onFarSide, ...command]);
    const [output, errors] = await Promise.all([curl.stdout.text(), curl.stderr.text()]);
    const [status, bytes = 0, seconds = 0] = output.split(' ').map(Number);
    if (status !== row.status || bytes !== row.trackBytes) throw new Error(`curl: ${output}${errors}`);
    rates.push((bytes * 8) / 1e6 / seconds);
  }
  return figure(rates);
}

/** KB of socket buffers at the gateway for each reader that has stopped, at once or after some megabytes. */
async function stoppedTable() {
  const cases = [0, 4e6].flatMap((readBytes) =>
    [false, true].flatMap((isLoopback) =>
      [true, false].map((isRange) => ({ readBytes, isLoopback, isRange })),
    ),
  );
  const lines: string[][] = [];
  for (const [sendKiB, receiveKiB] of PAIRS) {
    bound(SEND, sendKiB);
    bound(RECEIVE, receiveKiB);
    const cells: string[] = [];
    for (const each of cases) cells.push(await stopped(each));
    lines.push([`${sendKiB} KB, ${receiveKiB} KB`, ...cells]);
  }
  const titles = cases.map(({ readBytes, isLoopback, isRange }) =>
    [isRange ? 'range' : 'whole', isLoopback ? 'loopback' : 'MTU 1500', `after ${readBytes / 1e6} MB`].join(
      ', ',
    ),
  );
  return { columns: ['tcp_wmem, tcp_rmem at most', ...titles], lines };
}

async function stopped({
  readBytes,
  isLoopback,
  isRange,
}: Record<'isLoopback' | 'isRange', boolean> & { readBytes: number }) {
  await using line = await openDelayLine(1);
  await using upstream = await startUpstream(folder);
  await using running = await startGateway(upstream.url, isLoopback ? '127.0.0.1' : line.host);
  const { host, hostname, port } = new URL(running.url);
  const { range, ...others } = PLAYED_ROW.headers;
  const headers = Object.entries({ host, ...others, ...(isRange && { range }) });
  const lines = [`GET ${LONG_PATH} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  const script = new URL('stopped-readers.mjs', import.meta.url).pathname;
  const options = [hostname, port, `${lines.join('\r\n')}\r\n\r\n`, `${readBytes + 1}`, `${READERS}`];
  const prefix = isLoopback ? [] : line.onFarSide;
  const readers = spawnOn(OTHER_CORE, [...prefix, process.execPath, script, ...options]);
  const { done } = await readers.stdout.getReader().read();
  if (done) throw new Error(`a reader did not get its bytes: ${await readers.stderr.text()}`);
  let before = 0;
  for (let now = charged(); now !== before; now = charged()) {
    before = now;
    await Bun.sleep(SETTLED_MS);
  }
  readers.kill('SIGKILL');
  await readers.exited;
  return number(before / KiB / READERS);
}

function charged(): number {
  return Number(readFileSync(`${cgroup}/memory.kmem.tcp.usage_in_bytes`, 'utf8'));
}

function startGateway(upstreamUrl: string, host: string) {
  const { program, args, ...others } = gateway as Program;
  const enter = ['-c', `echo $$ >${cgroup}/cgroup.procs && exec "$@"`, 'sh'];
  const launched = { ...others, program: 'sh', args: [...enter, program, ...args] };
  return start(launched, { folder, upstreamUrl, host });
}
