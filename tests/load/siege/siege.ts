/** A gateway with the memory of its container, an upstream, attackers and users, each a process of its own. */

import { eventually } from '../../support/eventually.ts';
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts';
import { TRACK } from '../../support/long-calls.ts';
import { openMemoryCgroup } from '../../support/memory-cgroup.ts';
import { memoryOf } from '../../support/process-status.ts';
import { request } from '../../support/world.ts';

export const CONTAINER_MB = 256;
export const GENERATIONS = 20;
const PIECES = 40;
const PIECE_BYTES = 10_000;
/** Between two session checks: a user may ask the proxies for 50 a second. */
const PAUSE_MS = 40;

/** Where the users and the attackers send, and what the users must trust. */
export interface Way {
  readonly url: string;
  readonly certificate: string | undefined;
}

export interface Besieged {
  readonly gateway: GatewayProcess;
  readonly upstreamUrl: string;
}

/** Everything that is used ends before the gateway. */
export async function startBesieged(
  stack: AsyncDisposableStack,
  settings: Record<string, string> = {},
): Promise<Besieged> {
  const upstream = stack.use(startProgram('upstream-main.ts'));
  const upstreamUrl = await upstream.firstLine;
  const cgroup = await openMemoryCgroup(CONTAINER_MB * 1024 * 1024);
  if (!cgroup) throw new Error('no memory cgroup can be made');
  stack.use(cgroup);
  const all = { UPSTREAM_URL: upstreamUrl, IDP_URL: upstreamUrl, ...settings };
  return { gateway: stack.use(await startGatewayProcess(all, undefined, cgroup.prefix)), upstreamUrl };
}

/** @returns what the users met while the attackers were there, and the first problems */
export async function endure(gateway: GatewayProcess, way: Way, seconds: number, calmMb: number) {
  const problems: string[] = [];
  const during = (name: string, work: Promise<unknown>) =>
    work.catch((error: Error) => problems.length < 10 && problems.push(`${name}: ${error.message}`));
  for (let count = 0; count < 20; count++) await checkSession(way);
  await using attackers = startProgram('attackers-main.ts', way.url, String(seconds));
  await attackers.firstLine;
  let isOver = false;
  void Promise.race([attackers.exited, gateway.exited]).then(() => {
    isOver = true;
  });
  let complete = 0;
  const apartMs = ((seconds - 15) * 1000) / GENERATIONS;
  const paying = Array.from({ length: GENERATIONS }, async (_, index) => {
    await Bun.sleep(index * apartMs);
    const paid = generate(way, `paid-${index}`).then(() => complete++);
    await during(`generation ${index}`, paid);
  });
  const durations: number[] = [];
  while (!isOver) {
    const since = performance.now();
    await during('a session check', checkSession(way));
    durations.push(performance.now() - since);
    await Bun.sleep(PAUSE_MS);
  }
  await Promise.all(paying);
  const isCalm = async () => {
    // HAProxy allows a client 100 requests a second.
    await Bun.sleep(PAUSE_MS);
    await during('a session check afterwards', checkSession(way));
    return (await memoryOf(gateway.pid)).rssMb < calmMb;
  };
  await during('the memory afterwards', eventually(isCalm, `less than ${calmMb} MB`, 30_000));
  const sorted = Float64Array.from(durations).sort();
  const p99Ms = sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN;
  return { complete, checks: durations.length, p99Ms, problems };
}

/** From a user with whom no attacker shares a session. */
function send({ url, certificate }: Way, path: string, user: string, generation = {}) {
  const tls = certificate === undefined ? {} : { tls: { ca: certificate } };
  const cookie = `svc_music_access=${user}; svc_music_refresh=${user}-refresh`;
  return request(url + path, { cookie, ...generation, ...tls });
}

export async function checkSession(way: Way): Promise<void> {
  const response = await send(way, '/api/auth/session', 'ada');
  const text = await response.text();
  if (response.status !== 200 || text !== '{"token":"Bearer ada"}')
    throw new Error(`${response.status} ${text}`);
}

async function generate(way: Way, key: string): Promise<void> {
  const order = { headers: { 'idempotency-key': key }, json: { ...TRACK, prompt: 'track' } };
  const response = await send(way, '/api/music/generate', `${key}-payer`, order);
  const audio = await response.bytes();
  const pieces = Array.from({ length: PIECES }, (_, piece) =>
    Buffer.alloc(PIECE_BYTES, `${key}, piece ${piece}; `),
  );
  if (response.status !== 200 || !Buffer.concat(pieces).equals(audio))
    throw new Error(`${response.status} with ${audio.length} bytes`);
}

/** One of the programs in this folder; its stdin ends with this process. */
function startProgram(file: string, ...words: string[]) {
  const program = new URL(file, import.meta.url).pathname;
  const child = Bun.spawn([process.execPath, program, ...words], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  return {
    firstLine: reader.read().then(({ value = '' }) => value.trim()),
    exited: child.exited,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await child.exited;
    },
  };
}
