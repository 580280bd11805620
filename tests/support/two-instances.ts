/** `deploy/two-instances/run.sh`, started as somebody would who tries it, in front of a sandbox whose calls can be held. */

import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from './eventually.ts';
import { freePorts } from './free-ports.ts';
import { commandHaproxy, readStatistics } from './haproxy.ts';
import { PATIENT_WITH_REDIS } from './patient-redis-option.ts';
import { SANDBOX_CLIENT, startTestSandbox } from './sandbox-account.ts';
import { openUpstreamGate } from './upstream-gate.ts';
import { ORIGIN } from './world.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
/** For a busy machine. */
const DEADLINE_MS = 60_000;
const EXAMPLE = `${PROJECT}/deploy/two-instances`;

export type TwoInstances = Awaited<ReturnType<typeof startTwoInstances>>;

export async function startTwoInstances() {
  const sandbox = await startTestSandbox();
  const gate = openUpstreamGate(sandbox.upstream.url);
  const port = await freePorts(7);
  const folder = await mkdtemp(`${tmpdir()}/two-instances-`);
  const tools = {
    PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
    ADMIN_SOCKET: `${folder}/admin.sock`,
  };
  const example = Bun.spawn(['sh', `${EXAMPLE}/run.sh`], {
    env: {
      ...tools,
      BUN_OPTIONS: PATIENT_WITH_REDIS,
      // All visitors have one address, and ask without a pause.
      REQUESTS_PER_10_SECONDS: '1000000',
      LISTEN: `127.0.0.1:${port}`,
      PORT_A: String(port + 1),
      PORT_B: String(port + 2),
      METRICS_A: String(port + 3),
      METRICS_B: String(port + 4),
      REDIS_PORT: String(port + 5),
      STATISTICS: `127.0.0.1:${port + 6}`,
      UPSTREAM_URL: `http://127.0.0.1:${gate.port}`,
      IDP_URL: sandbox.identityProviderUrl,
      IDP_CLIENT_ID: SANDBOX_CLIENT.clientId,
      IDP_REDIRECT_URI: SANDBOX_CLIENT.redirectUri,
      ALLOWED_ORIGINS: ORIGIN,
      COOKIE_KEYS: randomBytes(32).toString('base64url'),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let log = '';
  const logRead = Promise.all(
    [example.stdout, example.stderr].map(async (stream) => {
      for await (const chunk of stream) log += Buffer.from(chunk).toString();
    }),
  );
  const statistics = `http://127.0.0.1:${port + 6}/`;
  const instances = () => readStatistics(statistics);
  const bothAreUp = async () => {
    if (example.exitCode !== null) throw new Error(`run.sh ended with ${example.exitCode}:\n${log}`);
    return (await instances().catch(() => [])).filter(({ status }) => status === 'UP').length === 2;
  };
  await eventually(bothAreUp, 'both gateways to be up', DEADLINE_MS);
  return {
    sandbox,
    gate,
    /** By https, with the certificate that run.sh has made. */
    base: new URL(`https://127.0.0.1:${port}`),
    /** HAProxy's page about the two. */
    statistics,
    instances,
    /** The sum of what both gateways count, such as `music_gateway_refreshes_total{outcome="renewed"}`. */
    async counted(metric: string) {
      const pages = [port + 3, port + 4].map(async (each) =>
        (await fetch(`http://127.0.0.1:${each}/metrics`)).text(),
      );
      const lines = (await Promise.all(pages)).flatMap((page) => page.split('\n'));
      const values = lines
        .filter((line) => line.startsWith(`${metric} `))
        .map((line) => line.slice(metric.length));
      return values.reduce((sum, value) => sum + Number(value), 0);
    },
    /** Takes the gateway that HAProxy knows as `a` out of service, and waits until nothing is under way at it. */
    async drainFirst() {
      await commandHaproxy('set server gateways/a state drain', tools);
      const isDrained = async () =>
        (await instances()).some(
          ({ name, status, underWay }) => name === 'a' && status !== 'UP' && underWay === 0,
        );
      await eventually(isDrained, 'the first gateway to be drained', DEADLINE_MS);
    },
    /** Signals the gateway that HAProxy knows as `a`. */
    async killFirst(signal: 'SIGKILL' | 'SIGTERM') {
      process.kill(await childWith(example.pid, `PORT=${port + 1}`), signal);
    },
    async [Symbol.asyncDispose]() {
      example.kill('SIGTERM');
      await logRead;
      await rm(folder, { recursive: true });
      await gate[Symbol.asyncDispose]();
      await sandbox.stop();
    },
  };
}

/** The process among those that a process has started which has this in its environment. */
async function childWith(parent: number, variable: string): Promise<number> {
  for (const thread of await readdir(`/proc/${parent}/task`)) {
    const children = await readFile(`/proc/${parent}/task/${thread}/children`, 'utf8');
    for (const child of children.trim().split(' ')) {
      const environment = await readFile(`/proc/${child}/environ`, 'utf8');
      if (environment.split('\0').includes(variable)) return Number(child);
    }
  }
  throw new Error(`no child of ${parent} has ${variable}`);
}
