/** One machine as `deploy/README.md` describes it: HAProxy, a Redis on a socket, and music-gateway@a or @b. */

import { randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { eventually } from './eventually.ts';
import { freePorts } from './free-ports.ts';
import { runToEnd } from './run-to-end.ts';
import { SANDBOX_CLIENT, startTestSandbox } from './sandbox-account.ts';
import { openUpstreamGate } from './upstream-gate.ts';
import { ORIGIN } from './world.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const DEADLINE_MS = 60_000;

export type VirtualMachine = Awaited<ReturnType<typeof startVirtualMachine>>;

export async function startVirtualMachine() {
  await using stack = new AsyncDisposableStack();
  const root = await mkdtemp(`${tmpdir()}/virtual-machine-`);
  stack.defer(() => rm(root, { recursive: true }));
  // Slow enough that generations are under way whenever an instance stops.
  const sandbox = await startTestSandbox({ pace: 2, startingBalance: 1_000_000 });
  stack.defer(() => sandbox.stop());
  const gate = stack.use(openUpstreamGate(sandbox.upstream.url));
  const port = await freePorts(6);
  const environment = await furnish(root, { port, gatePort: gate.port, issuer: sandbox.identityProviderUrl });

  const redis = ['--port', '0', '--unixsocket', `${root}/redis.sock`, '--save', '', '--dir', root];
  await start(stack, ['redis-server', ...redis], {});
  await start(stack, ['haproxy', '-f', `${PROJECT}/deploy/two-instances/haproxy.cfg`], environment);

  const systemctl = (...command: string[]) => runToEnd(['systemctl', ...command], { environment });
  stack.defer(async () => {
    await Promise.all(['a', 'b'].map((name) => systemctl('stop', `music-gateway@${name}`)));
  });
  await symlink(PROJECT, `${root}/opt/music-gateway/a`);
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
    gate,
    /** Runs `deploy/upgrade.sh` with a release in this folder, which may take so long to start. */
    upgrade: (release = PROJECT, startSeconds = 60) =>
      runToEnd(['sh', `${PROJECT}/deploy/upgrade.sh`, release], {
        environment: { ...environment, START_SECONDS: String(startSeconds) },
      }),
    async missedRedis() {
      const logs = ['a', 'b'].map((name) => Bun.file(`${root}/music-gateway@${name}.log`).text());
      return (await Promise.all(logs)).some((log) => log.includes('Redis does not respond'));
    },
    /** A release that ends as soon as it starts. */
    async brokenRelease() {
      const folder = `${root}/broken`;
      await mkdir(`${folder}/node_modules`, { recursive: true });
      await Bun.write(`${folder}/src/index.ts`, `console.error('error: this release is broken');`);
      return folder;
    },
    async activeInstances() {
      const states = await Promise.all(
        ['a', 'b'].map(async (name) => ({
          name,
          isActive: (await systemctl('is-active', `music-gateway@${name}`)).status === 0,
        })),
      );
      return states.filter(({ isActive }) => isActive).map(({ name }) => name);
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** Makes folders, programs, settings and a certificate. Returns the environment of the machine's commands. */
async function furnish(
  root: string,
  { port, gatePort, issuer }: { port: number; gatePort: number; issuer: string },
): Promise<Record<string, string>> {
  for (const folder of ['bin', 'etc/music-gateway', 'opt/music-gateway'])
    await mkdir(`${root}/${folder}`, { recursive: true });
  const programs = {
    systemctl: `exec ${process.execPath} ${PROJECT}/tests/support/stand-in-systemctl.ts "$@"`,
    // It is called for one unit: journalctl -u music-gateway@b ...
    journalctl: `exec tail -n 20 "$ROOT/$2.log"`,
    bun: `exec ${process.execPath} "$@"`,
  };
  for (const [name, command] of Object.entries(programs)) {
    await Bun.write(`${root}/bin/${name}`, `#!/bin/sh\n${command}\n`);
    await chmod(`${root}/bin/${name}`, 0o755);
  }
  const settings = {
    HOST: '127.0.0.1',
    UPSTREAM_URL: `http://127.0.0.1:${gatePort}`,
    IDP_URL: issuer,
    IDP_CLIENT_ID: SANDBOX_CLIENT.clientId,
    IDP_REDIRECT_URI: SANDBOX_CLIENT.redirectUri,
    ALLOWED_ORIGINS: ORIGIN,
    COOKIE_KEYS: randomBytes(32).toString('base64url'),
    REDIS_URL: `redis+unix://${root}/redis.sock`,
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
  await Bun.write(`${root}/etc/music-gateway/settings.env`, lines.join(''));
  await Bun.write(`${root}/etc/music-gateway/a.env`, `PORT=${port + 1}\nMETRICS_PORT=${port + 3}\n`);
  await Bun.write(`${root}/etc/music-gateway/b.env`, `PORT=${port + 2}\nMETRICS_PORT=${port + 4}\n`);
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const files = ['-keyout', `${root}/certificate.pem.key`, '-out', `${root}/certificate.pem`];
  const algorithm = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const { status } = await runToEnd(['openssl', 'req', '-x509', ...algorithm, ...subject, ...files]);
  if (status !== 0) throw new Error('openssl made no certificate');
  return {
    PATH: `${root}/bin:${process.env['PATH']}`,
    ROOT: root,
    INSTALLED: `${root}/opt/music-gateway`,
    SETTINGS: `${root}/etc/music-gateway/settings.env`,
    HEALTHY_SECONDS: '2',
    ADMIN_SOCKET: `${root}/admin.sock`,
    CERTIFICATE: `${root}/certificate.pem`,
    LISTEN: `127.0.0.1:${port}`,
    GATEWAY_A: `127.0.0.1:${port + 1}`,
    GATEWAY_B: `127.0.0.1:${port + 2}`,
    STATISTICS: `127.0.0.1:${port + 5}`,
    // All visitors have one address, and ask without a pause.
    REQUESTS_PER_10_SECONDS: '1000000',
  };
}

/** Starts a program that ends with the stack. */
async function start(stack: AsyncDisposableStack, command: string[], environment: Record<string, string>) {
  const child = Bun.spawn(command, {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'ignore'],
  });
  stack.defer(async () => {
    child.kill('SIGTERM');
    await child.exited;
  });
}
