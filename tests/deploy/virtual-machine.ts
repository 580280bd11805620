/** One machine as `deploy/README.md` describes it: HAProxy, a Redis on a socket, and the gateways a and b. */

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeCertificate } from '../support/certificate.ts';
import { eventually } from '../support/eventually.ts';
import { freePorts } from '../support/free-ports.ts';
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts';
import { PATIENT_WITH_REDIS } from '../support/patient-redis-option.ts';
import { LINUX, program } from '../support/requirements.ts';
import { SANDBOX_CLIENT, startTestSandbox } from '../support/sandbox-account.ts';
import { commandHaproxy, readStatistics } from './proxies/haproxy.ts';

const HAPROXY = fileURLToPath(new URL('../../deploy/two-instances/haproxy.cfg', import.meta.url));
const DEADLINE_MS = 60_000;
export type Instance = 'a' | 'b';

/** What a test needs that starts one. */
export const VIRTUAL_MACHINE = [program('redis-server'), program('haproxy'), program('openssl'), LINUX];

export type VirtualMachine = Awaited<ReturnType<typeof startVirtualMachine>>;

interface VirtualMachineOptions {
  /** The lifetime of the upstream's access tokens. */
  readonly accessTokenSeconds?: number;
  /** The speed of a generation; by default 2, slow enough that some are under way whenever an instance stops. */
  readonly pace?: number;
  /** Returns the address by which the gateways reach the sandbox's upstream. */
  readonly upstreamVia?: (address: string) => string;
}

/** HAProxy and `a` run at first. */
export async function startVirtualMachine(options: VirtualMachineOptions = {}) {
  const { upstreamVia = (address) => address, ...sandboxOptions } = options;
  await using stack = new AsyncDisposableStack();
  const root = await mkdtemp(`${tmpdir()}/virtual-machine-`);
  stack.defer(() => rm(root, { recursive: true }));
  await makeCertificate(root);
  const sandbox = await startTestSandbox({ pace: 2, startingBalance: 1_000_000, ...sandboxOptions });
  stack.defer(() => sandbox.stop());
  const port = await freePorts(6);
  const addresses = haproxyAddresses(port);
  const statistics = `http://${addresses.STATISTICS}/`;
  const tools = {
    PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
    ADMIN_SOCKET: `${root}/admin.sock`,
  };
  const settings = {
    UPSTREAM_URL: upstreamVia(sandbox.upstream.url),
    IDP_URL: sandbox.identityProviderUrl,
    IDP_CLIENT_ID: SANDBOX_CLIENT.clientId,
    IDP_REDIRECT_URI: SANDBOX_CLIENT.redirectUri,
    COOKIE_KEYS: randomBytes(32).toString('base64url'),
    REDIS_URL: `redis+unix://${root}/redis.sock`,
    BUN_OPTIONS: PATIENT_WITH_REDIS,
  };

  const ownRedis = ['redis-server', '--port', '0', '--unixsocket', `${root}/redis.sock`];
  const startRedis = () => run([...ownRedis, '--save', '', '--dir', root], {});
  let redis = startRedis();
  stack.defer(() => redis[Symbol.asyncDispose]());
  // All visitors have one address, and ask without a pause.
  const limit = { REQUESTS_PER_10_SECONDS: '1000000' };
  const certificate = { CERTIFICATE: `${root}/both.pem` };
  stack.use(run(['haproxy', '-f', HAPROXY], { ...tools, ...addresses, ...certificate, ...limit }));

  const running = new Map<Instance, GatewayProcess>();
  const logs = { a: '', b: '' };
  const start = async (name: Instance) => {
    const own = {
      PORT: String(port + (name === 'a' ? 1 : 2)),
      METRICS_PORT: String(port + (name === 'a' ? 3 : 4)),
    };
    const keep = (line: string) => {
      if (/"level":"error"|"refreshTokenReused"/.test(line)) logs[name] += `${line}\n`;
    };
    running.set(name, await startGatewayProcess({ ...settings, ...own }, keep));
  };
  const stop = async (name: Instance, signal: NodeJS.Signals = 'SIGTERM') => {
    const gateway = running.get(name);
    running.delete(name);
    gateway?.kill(signal);
    await gateway?.exited;
  };
  stack.defer(async () => void (await Promise.all([stop('a', 'SIGKILL'), stop('b', 'SIGKILL')])));
  const instances = () => readStatistics(statistics);
  /** Waits until HAProxy sees an instance with this status, or with so many requests in flight. */
  const untilSeen = async (name: Instance, expected: string | number, deadlineMs = DEADLINE_MS) => {
    const isSeen = async () =>
      (await instances().catch(() => [])).some(
        (each) => each.name === name && (each.status === expected || each.underWay === expected),
      );
    await eventually(isSeen, `${name} to be seen with ${expected}`, deadlineMs);
  };
  await start('a');
  await untilSeen('a', 'UP');
  const started = stack.move();
  return {
    base: new URL(`https://127.0.0.1:${port}`),
    sandbox,
    /** HAProxy's page about the two. */
    statistics,
    instances,
    /** Starts the second instance, which then gets half of the requests. */
    async startBoth() {
      await start('b');
      await untilSeen('b', 'UP');
    },
    /** Ends an instance in the middle of everything; resolves with what starts it again. */
    async kill(name: Instance) {
      await stop(name, 'SIGKILL');
      return async () => {
        await start(name);
        await untilSeen(name, 'UP');
      };
    },
    /** Upgrades one instance of two as `deploy/README.md` describes it: drains it, starts the new one, uses that. */
    async replace(name: Instance) {
      await commandHaproxy(`set server gateways/${name} state drain`, tools);
      await untilSeen(name, 0, 600_000);
      await stop(name);
      await untilSeen(name, 'DOWN');
      await start(name);
      await untilSeen(name, 'DRAIN');
      await commandHaproxy(`set server gateways/${name} state ready`, tools);
    },
    /** Stops Redis and starts an empty one after so many milliseconds. */
    async restartRedis(awayMs: number) {
      await redis[Symbol.asyncDispose]();
      await Bun.sleep(awayMs);
      redis = startRedis();
    },
    /** The process id of an instance; undefined while it does not run. */
    processId: async (name: Instance) => running.get(name)?.pid,
    /** What an instance has logged of errors and reused tokens. */
    log: async (name: Instance) => logs[name],
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** Where HAProxy listens with the first of six ports, and finds the instances. */
export function haproxyAddresses(port: number) {
  return {
    LISTEN: `127.0.0.1:${port}`,
    GATEWAY_A: `127.0.0.1:${port + 1}`,
    GATEWAY_B: `127.0.0.1:${port + 2}`,
    STATISTICS: `127.0.0.1:${port + 5}`,
  };
}

/** Runs until it is disposed. */
export function run(command: string[], environment: Readonly<Record<string, string>>): AsyncDisposable {
  const env = { PATH: process.env['PATH'], ...environment };
  const child = Bun.spawn(command, { env, stdio: ['ignore', 'ignore', 'ignore'] });
  return {
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await child.exited;
    },
  };
}
