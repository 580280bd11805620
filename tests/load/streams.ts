/** Much in flight at once: what it costs, what others notice, and who is refused or cut off. */

import { request } from '../support/world.ts';
import { Client } from './client.ts';
import { cookieOf } from './raw-client.ts';
import { Problems, percentile, type Report } from './report.ts';
import { checkSession, keepChecking, type Rig, startRig } from './rig.ts';
import { tracksOf } from './upstream.ts';
import { expired, WORKS, type Work, type Works } from './works.ts';

export interface Load {
  readonly works: Works;
  /** For how many seconds all of it is in flight before it goes on. */
  readonly seconds: number;
  /** Who comes after those seconds, just before the others go on. */
  readonly newcomers?: Works;
  readonly trackBytes?: number;
  /** The memory of the gateway's container. */
  readonly memoryMb?: number;
  /** How many requests are sent at once; a listener's queue takes no more connections than by default. */
  readonly atOnce?: number;
}

type Doing = ReturnType<typeof planned>[number];

const AT_ONCE = 100;
const PAUSE_MS = 10;
const WARM_UP_CHECKS = 500;
/** The allocator returns what only the beginning took. */
const SETTLE_MS = 1500;
const RESERVED_EVERY_MS = 200;
const LONGEST_MS = 300_000;
/** Whoever is refused or cut off is a warning. */
const WARNING = /^\{"level":"warn".*$/gm;

export async function runStreams(load: Load): Promise<Report> {
  const { works, seconds, newcomers = {}, trackBytes = 0, memoryMb, atOnce = AT_ONCE } = load;
  await using rig = await startRig(trackBytes, memoryMb);
  const { gateway } = rig;
  const url = new URL(gateway.url);
  const tracks = tracksOf(trackBytes);
  const problems = new Problems();
  // What is used once belongs to no work.
  await checkSession(gateway.url, WARM_UP_CHECKS);
  const idle = await usageOf(rig);
  let reservedPeakMb = 0;
  const watching = setInterval(async () => {
    reservedPeakMb = Math.max(reservedPeakMb, await gateway.reservedMb().catch(() => 0));
  }, RESERVED_EVERY_MS);
  await using stack = new AsyncDisposableStack();
  stack.defer(() => clearInterval(watching));
  const alsoDo = (round: number) => refreshAndSignIn(gateway.url, round);
  const others = stack.use(keepChecking(gateway.url, problems, PAUSE_MS, alsoDo));
  const all: Doing[] = [];
  const begin = async (each: Works) => {
    const begun = planned(each, tracks);
    all.push(...begun);
    for (const { client } of begun) stack.use(client);
    // An idle connection would be closed before its turn.
    for (const group of groupsOf(begun, atOnce)) {
      for (const some of groupsOf(group, AT_ONCE))
        await Promise.all(some.map(({ client }) => client.connect(url)));
      for (const { client } of group) client.send();
      await Promise.all(group.map(({ client, work }) => (work.waits ? undefined : client.begun)));
    }
    return begun;
  };
  const run = async () => {
    await begin(works);
    await rig.holds(all.filter(({ work }) => work.waits === 'upstream').length);
    const from = others.tookMs.length;
    await Bun.sleep(Math.max(SETTLE_MS, seconds * 1000));
    const inFlight = all.filter(({ client }) => !client.ending || client.ending === 'whole').length;
    const rest = await usageOf(rig);
    const meanwhile = others.tookMs.slice(from);
    const came = await begin(newcomers);
    const waited = Math.round(Math.max(0, ...came.map(({ client }) => client.firstByteMs)));
    await rig.release();
    const goOn = all.filter(({ work }) => !work.stays);
    for (const { client } of goOn) client.goOn();
    await Promise.all(goOn.map(({ client }) => client.ended));
    const perWork = (mb: number) => Math.round((mb * 1024) / Math.max(1, inFlight));
    const notReserved = ({ chargedMb, reservedMb }: typeof idle) =>
      Math.round(chargedMb - idle.chargedMb - (reservedMb - idle.reservedMb));
    const peak = { chargedMb: gateway.memory.peak(), reservedMb: reservedPeakMb };
    return {
      'waiting at once': inFlight,
      'KB charged per work': perWork(rest.chargedMb - idle.chargedMb),
      'KB reserved per work': perWork(rest.reservedMb - idle.reservedMb),
      'MB charged but not reserved': notReserved(rest),
      'MB charged but not reserved at peak': notReserved(peak),
      'p99 ms meanwhile': percentile(meanwhile, 0.99),
      'ms until newcomers hear something': waited,
    };
  };
  // Requests of this process fail first when the gateway is killed.
  const explain = (error: unknown) =>
    Promise.race([gateway.killed, Bun.sleep(SETTLE_MS).then(() => String(error))]);
  const figures = await Promise.race([run().catch(explain), gateway.killed, Bun.sleep(LONGEST_MS)]);
  await stack.disposeAsync();
  if (typeof figures !== 'object') problems.add(figures ?? `not over after ${LONGEST_MS / 1000} s`);
  const log = gateway.errors().replaceAll(WARNING, '').trim();
  if (log) problems.add(`the gateway's log: ${log.slice(0, 300)}`);
  const measured = typeof figures === 'object' ? figures : {};
  const endings = endingsOf(all, problems);
  return {
    figures: { ...endings, 'MB at peak': gateway.memory.peak(), ...measured },
    problems: problems.list(),
  };
}

/** In the order in which they are named. */
function planned(works: Works, tracks: readonly Uint8Array[]) {
  const names = Object.keys(works) as (keyof Works)[];
  return names.flatMap((name) => {
    const work: Work = WORKS[name];
    return Array.from({ length: works[name] ?? 0 }, (_, index) => {
      return { name, work, client: new Client(work.plan(index, tracks)) };
    });
  });
}

function groupsOf<Each>(all: readonly Each[], size: number): Each[][] {
  const count = Math.ceil(all.length / size);
  return Array.from({ length: count }, (_, index) => all.slice(index * size, (index + 1) * size));
}

async function refreshAndSignIn(url: string, round: number): Promise<void> {
  const json = { code: `code-${round}`, code_verifier: 'v'.repeat(43) };
  const responses = [
    await request(`${url}/api/auth/session`, expired(`o-${round}`)),
    await request(`${url}/api/auth/idp`, { ...cookieOf('new'), json }),
  ];
  for (const response of responses) {
    await response.bytes();
    if (!response.ok) throw new Error(`${response.url}: ${response.status}`);
  }
}

async function usageOf({ gateway }: Rig) {
  return { chargedMb: gateway.memory.now(), reservedMb: await gateway.reservedMb() };
}

/** How many of each have ended how. */
function endingsOf(all: readonly Doing[], problems: Problems): Record<string, number> {
  const endings: Record<string, number> = {};
  for (const { name, work, client } of all) {
    const figure = `${name} ${client.ending}`;
    endings[figure] = (endings[figure] ?? 0) + 1;
    const isWrong = work.mustBeWhole ? client.ending !== 'whole' : client.seen.startsWith('other bytes');
    if (isWrong) problems.add(`${name}: ${client.ending}, ${client.seen}`);
  }
  return endings;
}
