/**
 * A machine with a real systemd, in a container whose disk is this machine's own, where what it writes is forgotten. The
 * unit of `deploy/` and HAProxy are installed there as the operating page says, with secrets in credentials.
 */

import { fileURLToPath } from 'node:url';
import type { Sandbox } from '../../../src/demo/sandbox/sandbox.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { ORIGIN } from '../../support/world.ts';
import type { Podman } from '../container/podman.ts';
import { haproxySettings, sandboxSettings } from '../virtual-machine.ts';

const PROJECT = fileURLToPath(new URL('../../..', import.meta.url));
const UNITS = '/etc/systemd/system';
const INSTALLED = '/opt/music-gateway';
const RELEASE = `${INSTALLED}/0.1.0`;
const PATIENT_WITH_REDIS = `--preload=${RELEASE}/tests/support/patient-redis.ts`;
/** Podman would copy what this machine has there. */
const IN_MEMORY = ['/run', '/run/lock', '/tmp', '/var/log/journal'];
/** What this machine starts there for its kernel, its disks and its network must not start a second time. */
const EMPTY = ['sysinit', 'local-fs', 'network-online'].flatMap((target) =>
  ['/usr/lib/systemd/system', UNITS].map((folder) => `${folder}/${target}.target.wants`),
);

export type SystemdMachine = Awaited<ReturnType<typeof startSystemdMachine>>;

export async function startSystemdMachine(podman: Podman, sandbox: Sandbox) {
  const port = await freePorts(6);
  const folder = `${podman.folder}/machine`;
  const unit = await Bun.file(`${PROJECT}/deploy/music-gateway@.service`).text();
  const haproxy = await Bun.file(`${PROJECT}/deploy/two-instances/haproxy.cfg`).text();
  const files = {
    'settings.env': variables({
      ...{ HOST: '127.0.0.1', BUN_OPTIONS: PATIENT_WITH_REDIS, ALLOWED_ORIGINS: ORIGIN },
      ...sandboxSettings(sandbox),
    }),
    'a.env': variables({ PORT: port + 1, METRICS_PORT: port + 3 }),
    'b.env': variables({ PORT: port + 2, METRICS_PORT: port + 4 }),
    'music-gateway@.service': unit.replaceAll(/^#(LoadCredential|Environment)=/gm, '$1='),
    // Not every machine lets a container have more.
    'limits.conf': '[Service]\nLimitNOFILE=1024\n',
    'haproxy.cfg': haproxy.replaceAll(/#(user|group|chroot) /g, '$1 '),
    'haproxy.env': variables({
      ...haproxySettings(port),
      CONFIG: '/etc/music-gateway/haproxy.cfg',
      CERTIFICATE: '/etc/music-gateway/both.pem',
      ADMIN_SOCKET: '/run/music-gateway-haproxy.sock',
    }),
  };
  for (const [name, text] of Object.entries(files)) await Bun.write(`${folder}/${name}`, text);
  await makeCertificate(folder);
  const mounts = {
    [folder]: '/etc/music-gateway',
    [process.execPath]: '/usr/local/bin/bun',
    [PROJECT]: RELEASE,
    [`${folder}/music-gateway@.service`]: `${UNITS}/music-gateway@.service`,
    [`${folder}/limits.conf`]: `${UNITS}/music-gateway@.service.d/limits.conf`,
    [`${PROJECT}/deploy/check.conf`]: `${UNITS}/music-gateway@check.service.d/check.conf`,
  };
  const id = await podman.run(
    ...['run', '--detach', '--network', 'host', '--privileged', '--systemd', 'always'],
    ...['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=4096:4096', '--log-driver', 'k8s-file'],
    ...[...IN_MEMORY, ...EMPTY].flatMap((path) => ['--tmpfs', `${path}:rw,mode=755,notmpcopyup`]),
    ...Object.entries(mounts).flatMap(([from, to]) => ['--volume', `${from}:${to}:ro`]),
    ...['--volume', '/dev/null:/etc/fstab:ro'],
    ...['--rootfs', '/:O', '/lib/systemd/systemd', '--unit=systemd-journald.service'],
  );
  const run = (...command: string[]) => podman.try('exec', id, ...command);
  const state = async () => (await run('systemctl', 'is-system-running')).output.trim();
  await eventually(async () => /running|degraded/.test(await state()), 'systemd to be up', 60_000);
  // systemd does so itself where it does not run in a container; without it no service sees its credentials.
  await run('mount', '--make-rshared', '/');
  for (const link of ['a', 'check']) await run('ln', '-s', RELEASE, `${INSTALLED}/${link}`);
  await run('cp', '/etc/music-gateway/haproxy.env', '/etc/default/haproxy');
  return {
    base: new URL(`https://127.0.0.1:${port}`),
    run,
    upgrade: (release = RELEASE) =>
      run(
        ...['env', 'HEALTHY_SECONDS=2', 'START_SECONDS=10', 'XDG_RUNTIME_DIR=/run/user/0'],
        ...['sh', `${RELEASE}/deploy/upgrade.sh`, release],
      ),
    /** Installs a release with this source. Returns its folder. */
    async install(name: string, source: string) {
      const release = `${INSTALLED}/${name}`;
      await run('mkdir', '-p', `${release}/src`, `${release}/node_modules`);
      await Bun.write(`${folder}/${name}.ts`, source);
      await run('cp', `/etc/music-gateway/${name}.ts`, `${release}/src/index.ts`);
      return release;
    },
    /** Replaces the file with a secret, which a service reads when it starts. */
    keepSecret: (name: string, secret: string) => Bun.write(`${folder}/${name}`, `${secret}\n`),
    /** Starts or restarts a unit. Rejects when systemd says that it has failed. */
    async restart(unit: string) {
      const { status, errors } = await run('systemctl', 'restart', unit);
      if (status !== 0) throw new Error(errors + (await this.log(unit)));
    },
    async log(unit: string) {
      return (await run('journalctl', '--no-pager', '--output', 'cat', '--unit', unit)).output;
    },
  };
}

/** The text of an environment file. */
function variables(values: Readonly<Record<string, string | number>>): string {
  const lines = Object.entries(values).map(([name, value]) => `${name}=${value}\n`);
  return lines.join('');
}
