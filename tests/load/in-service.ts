/** A crowd at a gateway for long: at one instance, or at two while Redis, the upstream and the instances restart. */

import { startVirtualMachine } from '../deploy/virtual-machine.ts';
import { eventually } from '../support/eventually.ts';
import { SANDBOX_CLIENT, startTestSandbox } from '../support/sandbox-account.ts';
import { type Attendance, Crowd, type Service } from './crowd.ts';
import { memoryOf, openFilesOf, openSocketsOf } from './process-status.ts';
import { type Figures, growth, percentile, type Report } from './report.ts';
import { startLimitedGateway } from './rig.ts';

interface Run {
  readonly seconds: number;
  readonly attendance: Attendance;
  /** The length of what slow readers read. */
  readonly trackMs: number;
}

/** Something that happens every so many seconds. */
interface Disturbance {
  readonly everySeconds: number;
  readonly happen: (crowd: Crowd) => Promise<unknown>;
}

interface Place {
  readonly service: Service;
  /** The ids of the instances that run at the moment. */
  readonly processes: () => Promise<readonly number[]>;
  readonly disturbances: readonly Disturbance[];
  /** What an instance has logged that it should not have. */
  readonly complaints: () => Promise<string[]>;
}

const INSTANCES = ['a', 'b'] as const;
const SAMPLES = 72;
const REDIS_AWAY_MS = 1000;
const UPSTREAM_AWAY_MS = 1500;
/** An upstream that comes back gets everybody's requests at once. */
const AFTERMATH_MS = 2000;
/** A token that expires between a refresh and the call that follows it is a 401 of the upstream's. */
const EXPIRY_MS = 1000;
/** A track of three minutes is there after 22 seconds. */
const SANDBOX = { pace: 8, accessTokenSeconds: 20, startingBalance: 1_000_000 };

export async function runOne(run: Run & { readonly memoryMb?: number }): Promise<Report> {
  const sandbox = await startTestSandbox(SANDBOX);
  await using stack = new AsyncDisposableStack();
  stack.defer(() => sandbox.stop());
  const settings = {
    UPSTREAM_URL: sandbox.upstream.url,
    IDP_URL: sandbox.identityProviderUrl,
    IDP_REDIRECT_URI: SANDBOX_CLIENT.redirectUri,
  };
  const gateway = stack.use(await startLimitedGateway(settings, run.memoryMb));
  const atStart = await openSocketsOf(gateway.pid);
  const report = await observe(run, {
    service: { base: new URL(gateway.url), sandbox },
    processes: async () => [gateway.pid],
    disturbances: [expiry(sandbox, run.seconds / 3)],
    complaints: async () => gateway.errors().split('\n').filter(Boolean),
  });
  // Its connections to the upstream end, and all others have ended.
  await sandbox.upstream.restart(0);
  const areClosed = async () => (await openSocketsOf(gateway.pid)) <= atStart;
  await eventually(areClosed, `the gateway's sockets to be ${atStart} again`, 60_000);
  return report;
}

/** How often Redis and the upstream restart, and the instances are replaced. */
export interface Intervals {
  readonly redisSeconds: number;
  readonly upstreamSeconds: number;
  readonly upgradeSeconds: number;
}

export async function runTwo({ redisSeconds, upstreamSeconds, upgradeSeconds, ...run }: Run & Intervals) {
  await using machine = await startVirtualMachine(SANDBOX);
  await machine.startBoth();
  const { sandbox } = machine;
  const restartUpstream = async () => {
    await sandbox.upstream.restart(UPSTREAM_AWAY_MS);
    await Bun.sleep(AFTERMATH_MS);
  };
  const upgrade = async () => {
    for (const name of INSTANCES) await machine.replace(name);
  };
  return await observe(run, {
    service: machine,
    processes: async () => {
      const pids = await Promise.all(INSTANCES.map((name) => machine.processId(name)));
      return pids.filter((pid) => pid !== undefined);
    },
    disturbances: [
      { everySeconds: redisSeconds, happen: () => machine.restartRedis(REDIS_AWAY_MS) },
      { everySeconds: upstreamSeconds, happen: (crowd) => crowd.excuse(restartUpstream) },
      { everySeconds: upgradeSeconds, happen: upgrade },
      expiry(sandbox, Math.min(40, run.seconds / 6)),
    ],
    complaints: async () => {
      const logs = await Promise.all(INSTANCES.map((name) => machine.log(name)));
      return logs.flatMap((log) => log.match(/^.*("level":"error"|"refreshTokenReused").*$/gm) ?? []);
    },
  });
}

function expiry({ upstream }: Service['sandbox'], everySeconds: number): Disturbance {
  const expire = async () => {
    upstream.expireAccessTokens();
    await Bun.sleep(EXPIRY_MS);
  };
  return { everySeconds, happen: (crowd) => crowd.excuse(expire) };
}

async function observe({ seconds, attendance, trackMs }: Run, place: Place): Promise<Report> {
  const { service, disturbances } = place;
  await using crowd = await Crowd.arrive(service, attendance, trackMs);
  const { problems } = crowd;
  const samples = new Map<string, number[]>();
  const begunAt = performance.now();
  const endsAt = begunAt + seconds * 1000;
  /** Does the work at each multiple of the interval. An interval that passes meanwhile is left out. */
  const every = async (intervalMs: number, work: () => Promise<unknown>) => {
    for (let next = begunAt + intervalMs; next < endsAt; next += intervalMs) {
      const waitMs = next - performance.now();
      if (waitMs < 0) continue;
      await Bun.sleep(waitMs);
      await problems.during('the schedule', work());
    }
  };
  const sample = async () => {
    for (const pid of await place.processes()) {
      // A process may end meanwhile.
      const { rssMb } = await memoryOf(pid).catch(() => ({ rssMb: Number.NaN }));
      const files = await openFilesOf(pid).catch(() => Number.NaN);
      for (const [what, value] of Object.entries({ MB: rssMb, files })) {
        const name = `${what} ${pid}`;
        if (!Number.isNaN(value)) samples.set(name, [...(samples.get(name) ?? []), value]);
      }
    }
  };
  const disturb = ({ everySeconds, happen }: Disturbance) => every(everySeconds * 1000, () => happen(crowd));
  await Promise.all([every((seconds * 1000) / SAMPLES, sample), ...disturbances.map(disturb)]);
  await crowd.leave();

  const { refreshes, refusedRefreshes, signIns, generations } = service.sandbox.upstream.counts();
  if (refusedRefreshes) problems.add(`the upstream refused ${refusedRefreshes} refresh tokens`);
  if (generations > crowd.orders) problems.add(`${crowd.orders} orders became ${generations} creations`);
  const complaints = await place.complaints();
  if (complaints.length)
    problems.add(`${complaints.length} lines in the log: ${complaints[0]?.slice(0, 300)}`);
  const gained = (what: string) =>
    Math.max(...[...samples].filter(([name]) => name.startsWith(what)).map(([, values]) => growth(values)));
  const figures: Figures = {
    'rounds by kind': list(crowd.served),
    'excused while the upstream restarted': list(crowd.excused),
    'signed out': crowd.signedOut,
    'refreshes, sign-ins, creations upstream': `${refreshes}, ${signIns}, ${generations}`,
    'most MB that an instance gained': gained('MB'),
    'most files that an instance gained': gained('files'),
    'p99 ms of session checks': percentile(crowd.checkMs, 0.99),
  };
  return { figures, problems: problems.list() };
}

function list(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([name, count]) => `${name} ${count}`).join(', ') || 'none';
}
