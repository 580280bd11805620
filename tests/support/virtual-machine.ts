/** One machine as `deploy/README.md` describes it: HAProxy, a Redis on a socket, and music-gateway@a or @b. */

import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { eventually } from './eventually.ts';
import { freePorts } from './free-ports.ts';
import { commandHaproxy, readStatistics } from './haproxy.ts';
import { LINUX, program } from './requirements.ts';
import { runToEnd } from './run-to-end.ts';
import { startTestSandbox } from './sandbox-account.ts';
import { furnish } from './virtual-machine-files.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const DEADLINE_MS = 60_000;
const INSTANCES = ['a', 'b'] as const;
export type Instance = (typeof INSTANCES)[number];

/** What a test needs that starts one. */
export const VIRTUAL_MACHINE = [
  program('redis-server'),
  program('haproxy'),
  program('openssl'),
  program('flock'),
  LINUX,
];

export type VirtualMachine = Awaited<ReturnType<typeof startVirtualMachine>>;

interface VirtualMachineOptions {
  /** The lifetime of the upstream's access tokens. */
  readonly accessTokenSeconds?: number;
  /** The speed of a generation; by default 2, slow enough that some are under way whenever an instance stops. */
  readonly pace?: number;
}

export async function startVirtualMachine(options: VirtualMachineOptions = {}) {
  await using stack = new AsyncDisposableStack();
  const root = await mkdtemp(`${tmpdir()}/virtual-machine-`);
  stack.defer(() => rm(root, { recursive: true }));
  const sandbox = await startTestSandbox({ pace: 2, startingBalance: 1_000_000, ...options });
  stack.defer(() => sandbox.stop());
  const port = await freePorts(6);
  const environment = await furnish(root, { port, sandbox });

  const ownRedis = ['redis-server', '--port', '0', '--unixsocket', `${root}/redis.sock`];
  const startRedis = () => start([...ownRedis, '--save', '', '--dir', root], {});
  let redis = startRedis();
  stack.defer(() => stop(redis));
  const haproxy = start(['haproxy', '-f', `${PROJECT}/deploy/two-instances/haproxy.cfg`], environment);
  stack.defer(() => stop(haproxy));

  const systemctl = (...command: string[]) => runToEnd(['systemctl', ...command], { environment });
  const isActive = async (name: Instance) =>
    (await systemctl('is-active', `music-gateway@${name}`)).status === 0;
  const log = (name: Instance) => Bun.file(`${root}/music-gateway@${name}.log`).text();
  /** Waits until HAProxy sees an instance with this status, or with so many requests in flight. */
  const untilSeen = async (name: Instance, expected: string | number, deadlineMs = DEADLINE_MS) => {
    const isSeen = async () =>
      (await readStatistics(`http://${environment.STATISTICS}/`)).some(
        (each) => each.name === name && (each.status === expected || each.underWay === expected),
      );
    await eventually(isSeen, `${name} to be seen with ${expected}`, deadlineMs);
  };
  stack.defer(async () => {
    await Promise.all(INSTANCES.map((name) => systemctl('stop', `music-gateway@${name}`)));
  });
  // An interrupted run skips the disposal.
  const onExit = () => {
    for (const name of INSTANCES) endProcess(`${root}/music-gateway@${name}.pid`);
    haproxy.kill();
    redis.kill();
  };
  process.once('exit', onExit);
  stack.defer(() => void process.off('exit', onExit));
  for (const name of INSTANCES) await symlink(PROJECT, `${root}/opt/music-gateway/${name}`);
  await systemctl('start', 'music-gateway@a');
  const base = new URL(`https://127.0.0.1:${port}`);
  const isUp = async () =>
    (await fetch(new URL('/api/health', base), { tls: { rejectUnauthorized: false } }).catch(() => undefined))
      ?.ok;
  await eventually(isUp, 'the machine to serve', DEADLINE_MS);
  const running = stack.move();
  return {
    base,
    sandbox,
    /** Runs `deploy/upgrade.sh` with a release in this folder, which may take so long to start. */
    upgrade: (release = PROJECT, startSeconds = 60) =>
      runToEnd(['sh', `${PROJECT}/deploy/upgrade.sh`, release], {
        environment: { ...environment, START_SECONDS: String(startSeconds) },
      }),
    /** Starts the second instance, which then gets half of the requests. */
    async startBoth() {
      await systemctl('start', 'music-gateway@b');
      await untilSeen('b', 'UP');
    },
    /** Upgrades one instance of two as `deploy/README.md` describes it: drains it, starts the new one, uses that. */
    async replace(name: Instance) {
      await commandHaproxy(`set server gateways/${name} state drain`, environment);
      await untilSeen(name, 0, 600_000);
      await systemctl('stop', `music-gateway@${name}`);
      await untilSeen(name, 'DOWN');
      await systemctl('start', `music-gateway@${name}`);
      await untilSeen(name, 'DRAIN');
      await commandHaproxy(`set server gateways/${name} state ready`, environment);
    },
    stopRedis: () => stop(redis),
    /** Stops Redis and starts an empty one after so many milliseconds. */
    async restartRedis(awayMs: number) {
      await stop(redis);
      await Bun.sleep(awayMs);
      redis = startRedis();
    },
    /** The process id of an instance; undefined while it does not run. */
    async processId(name: Instance) {
      const text = await Bun.file(`${root}/music-gateway@${name}.pid`).text();
      return (await isActive(name)) ? Number(text) : undefined;
    },
    /** What an instance has logged. */
    log,
    /** A release of its own, with this source. */
    async release(source: string) {
      const folder = await mkdtemp(`${root}/release-`);
      await mkdir(`${folder}/node_modules`);
      await Bun.write(`${folder}/src/index.ts`, source);
      return folder;
    },
    async activeInstances() {
      const states = await Promise.all(INSTANCES.map(isActive));
      return INSTANCES.filter((_, index) => states[index]);
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

function start(command: string[], environment: Record<string, string>) {
  return Bun.spawn(command, {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'ignore'],
  });
}

function endProcess(pidFile: string): void {
  try {
    process.kill(Number(readFileSync(pidFile, 'utf8')));
  } catch {
    // It has not been started, or has ended.
  }
}

async function stop(child: Bun.Subprocess): Promise<void> {
  child.kill('SIGTERM');
  await child.exited;
}
