/** One machine as `deploy/README.md` describes it: HAProxy, a Redis on a socket, and the gateways a and b. */

import { randomBytes } from 'node:crypto';
import type { Sandbox } from '../../src/demo/sandbox/sandbox.ts';
import { CERTIFICATE } from '../support/certificate.ts';
import { ROOT } from '../support/documents.ts';
import { eventually } from '../support/eventually.ts';
import { freePorts } from '../support/free-ports.ts';
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts';
import { parseSamples } from '../support/metrics.ts';
import { PATIENT_WITH_REDIS, REDIS_SERVER, startRedis } from '../support/redis.ts';
import { LINUX, program } from '../support/requirements.ts';
import { runToEnd } from '../support/run-to-end.ts';
import { sandboxSettings } from '../support/sandbox-account.ts';
import { writeOrigins } from './proxies/tls-proxies.ts';

const EXAMPLE = `${ROOT}deploy/two-instances`;
type Instance = 'a' | 'b';

/** What a test needs that starts one. */
export const VIRTUAL_MACHINE = [REDIS_SERVER, program('haproxy'), program('openssl'), LINUX];

export type VirtualMachine = Awaited<ReturnType<typeof startVirtualMachine>>;

/** @param upstreamUrl where the gateways reach the sandbox's upstream */
export async function startVirtualMachine(sandbox: Sandbox, upstreamUrl = sandbox.upstream.url) {
  await using stack = new AsyncDisposableStack();
  const port = await freePorts(6);
  const addresses = haproxySettings(port);
  const redis = stack.use(await startRedis('--unixsocket', 'redis.sock'));
  const { folder } = redis;
  const environment = { ADMIN_SOCKET: `${folder}/admin.sock` };
  const settings = {
    ...sandboxSettings(sandbox),
    UPSTREAM_URL: upstreamUrl,
    COOKIE_KEYS: randomBytes(32).toString('base64url'),
    REDIS_URL: `redis+unix://${folder}/redis.sock`,
    BUN_OPTIONS: PATIENT_WITH_REDIS,
  };
  const ORIGINS = await writeOrigins(folder);
  const env = { ...process.env, ...environment, ...addresses, CERTIFICATE, ORIGINS };
  const haproxy = ['haproxy', '-f', `${EXAMPLE}/haproxy.cfg`];
  stack.use(Bun.spawn(haproxy, { env, stdio: ['ignore', 'ignore', 'ignore'] }));

  const running = new Map<Instance, GatewayProcess>();
  const complaints: string[] = [];
  const keep = (line: string) => {
    if (/"level":"error"|"refreshTokenReused"/.test(line)) complaints.push(line);
  };
  const instances = () => readStatistics(`http://${addresses.STATISTICS}/`);
  /** Waits until a column of HAProxy's statistics has this value for an instance. */
  const untilSeen = async (name: Instance, column: string, expected: string, deadlineMs = 60_000) => {
    const isSeen = async () =>
      (await instances()).some((each) => each['svname'] === name && each[column] === expected);
    await eventually(() => isSeen().catch(() => false), `${column} of ${name} to be ${expected}`, deadlineMs);
  };
  const portOf = (name: Instance) => port + (name === 'a' ? 1 : 2);
  const metricsPortOf = (name: Instance) => portOf(name) + 2;
  /** An instance without Redis does not know which refresh tokens the other one has spent. */
  const untilShared = async (name: Instance) => {
    const isShared = async () => {
      const metrics = await fetch(`http://127.0.0.1:${metricsPortOf(name)}/metrics`);
      return parseSamples(await metrics.text()).get('redis_up') === 1;
    };
    await eventually(isShared, `Redis to respond to ${name}`, 60_000);
  };
  const start = async (name: Instance, status = 'UP') => {
    const ports = { PORT: `${portOf(name)}`, METRICS_PORT: `${metricsPortOf(name)}` };
    running.set(name, await startGatewayProcess({ ...settings, ...ports }, keep));
    await untilShared(name);
    await untilSeen(name, 'status', status);
  };
  const stop = async (name: Instance, signal: NodeJS.Signals = 'SIGTERM') => {
    const gateway = running.get(name);
    running.delete(name);
    gateway?.kill(signal);
    await gateway?.exited;
  };
  stack.defer(async () => void (await Promise.all([stop('a', 'SIGKILL'), stop('b', 'SIGKILL')])));
  const command = async (line: string) => {
    const { output, errors } = await runToEnd(['sh', `${EXAMPLE}/admin.sh`, line], { environment });
    if (output.trim() || errors) throw new Error(`HAProxy refused: ${output}${errors}`);
  };
  await start('a');
  await start('b');
  const started = stack.move();
  return {
    base: new URL(`https://127.0.0.1:${port}`),
    sandbox,
    instances,
    start,
    kill: (name: Instance) => stop(name, 'SIGKILL'),
    /** Upgrades one instance of two as `deploy/README.md` describes it: drains it, starts the new one, uses that. */
    async replace(name: Instance) {
      await command(`set server gateways/${name} state drain`);
      await untilSeen(name, 'scur', '0', 600_000);
      await stop(name);
      await untilSeen(name, 'status', 'DOWN');
      await start(name, 'DRAIN');
      await command(`set server gateways/${name} state ready`);
    },
    /** Stops Redis and starts an empty one after so many milliseconds. Resolves when the instances use it again. */
    async restartRedis(awayMs: number) {
      await redis.stop();
      await Bun.sleep(awayMs);
      await redis.start();
      await Promise.all([...running.keys()].map(untilShared));
    },
    /** The ids of the instances that run at the moment. */
    processes: () => [...running.values()].map(({ pid }) => pid),
    /** What the instances have logged of errors and reused tokens. */
    complaints: () => complaints,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/**
 * What HAProxy's statistics say of each gateway, by column. `status`: UP; DRAIN, healthy, but gets no new requests; DOWN or
 * MAINT. `scur`: requests in flight. `hrsp_2xx`: responses of 200 to 299. `wretr`: how often it has connected again.
 */
export async function readStatistics(address: string): Promise<Record<string, string>[]> {
  const [head = '', ...rows] = (await (await fetch(`${address};csv`)).text()).split('\n');
  const columns = head.replace('# ', '').split(',');
  return rows
    .filter((row) => row.startsWith('gateways,') && !row.includes('BACKEND'))
    .map((row) => Object.fromEntries(row.split(',').map((value, at) => [columns[at], value])));
}

/** Where HAProxy listens with the first of six ports, and finds the instances; how much it takes from one address. */
export function haproxySettings(port: number) {
  return {
    LISTEN: `127.0.0.1:${port}`,
    GATEWAY_A: `127.0.0.1:${port + 1}`,
    GATEWAY_B: `127.0.0.1:${port + 2}`,
    STATISTICS: `127.0.0.1:${port + 5}`,
    // All visitors have one address, and ask without a pause.
    REQUESTS_PER_10_SECONDS: '1000000',
  };
}
