/** A gateway with the memory of its container, an upstream, attackers and users, each a process of its own. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts';
import { request } from '../../support/world.ts';
import { seededBlocks } from '../soak/content.ts';
import { type Outcome, Problems, percentile } from '../soak/outcome.ts';
import { memoryOf } from '../soak/process-status.ts';
import { openMemoryCgroup } from './memory-cgroup.ts';
import { paidAudio } from './paid-audio.ts';

const PUBLIC_TRACK_BYTES = 40_000_000;
const GENERATIONS = 20;
/** Between two session checks: a user may ask the proxies for 50 a second. */
const PAUSE_MS = 40;
const RECOVERY_MS = 30_000;
/** Of a process that has ended. */
const GONE = { rssMb: Number.NaN, peakMb: Number.NaN };

/** Where the users and the attackers send, and what the users must trust. */
export interface Way {
  readonly url: string;
  readonly certificate: string | undefined;
}

export interface Siege extends AsyncDisposable {
  readonly gateway: GatewayProcess;
  /** Ends with the siege, before the gateway. */
  readonly stack: AsyncDisposableStack;
  endure(way: Way, seconds: number): Promise<Outcome<Record<string, number>>>;
}

export async function startSiege(): Promise<Siege> {
  await using starting = new AsyncDisposableStack();
  const folder = await mkdtemp(`${tmpdir()}/siege-`);
  starting.defer(() => rm(folder, { recursive: true, force: true }));
  await Bun.write(`${folder}/track`, Buffer.concat([...seededBlocks('track', PUBLIC_TRACK_BYTES)]));
  const upstream = starting.use(startProgram('upstream-main.ts', folder));
  const UPSTREAM_URL = await upstream.firstLine;
  const cgroup = await openMemoryCgroup();
  if (!cgroup) throw new Error('no memory cgroup can be made');
  starting.use(cgroup);
  const settings = { UPSTREAM_URL, IDP_URL: UPSTREAM_URL, MAX_IN_FLIGHT_PER_SESSION: '10' };
  const gateway = starting.use(await startGatewayProcess(settings, undefined, cgroup.prefix));
  const started = starting.move();
  const stack = started.use(new AsyncDisposableStack());
  return {
    gateway,
    stack,
    endure: (way, seconds) => endure(gateway, way, seconds),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

async function endure(
  gateway: GatewayProcess,
  way: Way,
  seconds: number,
): Promise<Outcome<Record<string, number>>> {
  const problems = new Problems();
  let isOver = false;
  void gateway.exited.then((code) => {
    if (!isOver) problems.add(`the gateway ended with ${code}`);
  });
  for (let count = 0; count < 20; count++) await checkSession(way);
  const before = await memoryOf(gateway.pid);
  await using attackers = startProgram('attackers-main.ts', way.url, String(seconds));
  const siege = attackers.exited.then(() => {
    isOver = true;
  });
  await attackers.firstLine;
  let whole = 0;
  const apartMs = ((seconds - 15) * 1000) / GENERATIONS;
  const paying = Array.from({ length: GENERATIONS }, async (_, index) => {
    await Bun.sleep(index * apartMs);
    await problems.during(
      `generation ${index}`,
      generate(way, index).then(() => whole++),
    );
  });
  const durations: number[] = [];
  while (!isOver) {
    const since = performance.now();
    await problems.during('a session check', checkSession(way));
    durations.push(performance.now() - since);
    await Bun.sleep(PAUSE_MS);
  }
  await Promise.all([siege, ...paying]);
  const { peakMb } = await memoryOf(gateway.pid).catch(() => GONE);
  // The users go on.
  for (const until = performance.now() + RECOVERY_MS; performance.now() < until; ) {
    await problems.during('a session check afterwards', checkSession(way));
    await Bun.sleep(PAUSE_MS);
  }
  const after = await memoryOf(gateway.pid).catch(() => GONE);
  return {
    figures: {
      'paid generations whole': whole,
      'session checks': durations.length,
      'p50 ms': percentile(durations, 0.5),
      'p99 ms': percentile(durations, 0.99),
      'MB before': before.rssMb,
      'MB at peak': peakMb,
      'MB after 30 s': after.rssMb,
    },
    problems: problems.list(),
  };
}

/** Of a user whom no attacker shares a session with. */
function send({ url, certificate }: Way, path: string, user: string, json?: unknown, key = '') {
  return request(url + path, {
    cookie: `svc_music_access=${user}; svc_music_refresh=${user}-refresh`,
    headers: key ? { 'idempotency-key': key } : {},
    ...(json === undefined ? {} : { json }),
    ...(certificate === undefined ? {} : { tls: { ca: certificate } }),
  });
}

async function checkSession(way: Way): Promise<void> {
  const response = await send(way, '/api/auth/session', 'ada');
  const text = await response.text();
  if (response.status !== 200 || text !== '{"token":"Bearer ada"}')
    throw new Error(`${response.status} ${text}`);
}

async function generate(way: Way, index: number): Promise<void> {
  const key = `paid-${index}`;
  const order = { model: 'm', prompt: 'track', music_length_ms: 3000 };
  const response = await send(way, '/api/music/generate', `payer-${index}`, order, key);
  const audio = Buffer.from(await response.arrayBuffer());
  if (response.status !== 200 || !audio.equals(paidAudio(key))) {
    throw new Error(`${response.status}, ${audio.length} bytes: ${audio.toString('latin1', 0, 100)}`);
  }
}

/** One of the programs in this folder; it ends with the siege. */
function startProgram(file: string, ...words: string[]) {
  const program = new URL(file, import.meta.url).pathname;
  const child = Bun.spawn([process.execPath, program, ...words], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const { promise: firstLine, resolve } = Promise.withResolvers<string>();
  void (async () => {
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) resolve(text.trim());
    resolve('');
  })();
  return {
    firstLine,
    exited: child.exited,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await child.exited;
    },
  };
}
