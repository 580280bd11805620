/**
 * A machine with a real systemd, in a container whose disk is this machine's own, where what it writes is forgotten. The
 * lines of `deploy/README.md` install the gateway there, with secrets in credentials, and HAProxy in front.
 */

import { cp } from 'node:fs/promises';
import { $ } from 'bun';
import type { Sandbox } from '../../../src/demo/sandbox/sandbox.ts';
import { CERTIFICATE } from '../../support/certificate.ts';
import { projectFiles, ROOT, readDocument, section } from '../../support/documents.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { sandboxSettings } from '../../support/sandbox-account.ts';
import { ORIGIN } from '../../support/world.ts';
import { type Podman, RUN_OPTIONS } from '../container/podman.ts';
import { haproxySettings } from '../virtual-machine.ts';

const OTHER_USER = 1000;
const UNITS = '/etc/systemd/system';
/** Where the machine finds what the test has written for it. */
const GIVEN = '/etc/given';
const BUN = '/usr/local/lib/bun-of-this-machine';
const INSTALLED = '/opt/music-gateway';
const RELEASE = `${INSTALLED}/0.1.0`;
const PATIENT_WITH_REDIS = `--preload=${RELEASE}/tests/support/patient-redis.ts`;
/** What an operator adds with `systemctl edit`; settings and ports are those of the test. */
const UNIT_GIVEN = `[Service]
LoadCredential=cookie-keys:${GIVEN}/cookie-keys
Environment=COOKIE_KEYS_FILE=%d/cookie-keys
LoadCredential=redis-url:${GIVEN}/redis-url
Environment=REDIS_URL_FILE=%d/redis-url
EnvironmentFile=${GIVEN}/settings.env
EnvironmentFile=-${GIVEN}/%i.env
# Not every machine lets a container have more.
LimitNOFILE=1024
`;
/** Podman would copy what this machine has there. */
const IN_MEMORY = ['/run', '/run/lock', '/tmp', '/var/log/journal'];
/** What this machine starts there for its kernel, its disks and its network must not start a second time. */
const EMPTY = ['sysinit', 'local-fs', 'network-online'].flatMap((target) =>
  ['/usr/lib/systemd/system', UNITS].map((folder) => `${folder}/${target}.target.wants`),
);

export type SystemdMachine = Awaited<ReturnType<typeof startSystemdMachine>>;

/** Before anything is installed. */
export async function startSystemdMachine(podman: Podman, sandbox: Sandbox) {
  const port = await freePorts(6);
  const folder = `${podman.folder}/machine`;
  const haproxy = await Bun.file(`${ROOT}deploy/two-instances/haproxy.cfg`).text();
  const files = {
    'settings.env': variables({
      ...{ HOST: '127.0.0.1', BUN_OPTIONS: PATIENT_WITH_REDIS, ALLOWED_ORIGINS: ORIGIN },
      ...sandboxSettings(sandbox),
    }),
    'a.env': variables({ PORT: port + 1, METRICS_PORT: port + 3 }),
    'b.env': variables({ PORT: port + 2, METRICS_PORT: port + 4 }),
    'given.conf': UNIT_GIVEN,
    // Bun would load what it names, if a script ran Bun in the folder in which it is called.
    'bunfig.toml': 'preload = ["./missing.ts"]\n',
    // Bun is here already, and the kernel is this machine's own.
    'sbin/npm': `#!/bin/sh\nexec ln -sf ${BUN} /usr/local/bin/bun\n`,
    'sbin/sysctl': '#!/bin/sh\nexec /usr/sbin/sysctl --dry-run "$@"\n',
    'haproxy.cfg': haproxy.replaceAll(/#(user|group|chroot) /g, '$1 '),
    'certificate.pem': await Bun.file(CERTIFICATE).text(),
    'haproxy.env': variables({
      ...haproxySettings(port),
      CONFIG: `${GIVEN}/haproxy.cfg`,
      CERTIFICATE: `${GIVEN}/certificate.pem`,
      ORIGINS: '/etc/music-gateway/origins',
      ADMIN_SOCKET: '/run/music-gateway-haproxy.sock',
    }),
  };
  for (const [name, text] of Object.entries(files)) await Bun.write(`${folder}/${name}`, text);
  await $`chmod +x ${folder}/sbin/npm ${folder}/sbin/sysctl`;
  await makeCheckout(`${folder}/checkout`);
  const mounts = {
    [folder]: GIVEN,
    [process.execPath]: BUN,
    [`${folder}/given.conf`]: `${UNITS}/music-gateway@.service.d/given.conf`,
    [`${folder}/sbin`]: '/usr/local/sbin',
    '/dev/null': '/etc/fstab',
  };
  const id = await podman.run(
    ...['run', '--detach', '--network', 'host', '--privileged', '--systemd', 'always'],
    ...RUN_OPTIONS,
    ...[...IN_MEMORY, ...EMPTY].flatMap((path) => ['--tmpfs', `${path}:rw,mode=755,notmpcopyup`]),
    ...Object.entries(mounts).flatMap(([from, to]) => ['--volume', `${from}:${to}:ro`]),
    ...['--rootfs', '/:O', '/lib/systemd/systemd', '--unit=systemd-journald.service'],
  );
  const run = (...command: string[]) => podman.try('exec', id, ...command);
  const state = async () => (await run('systemctl', 'is-system-running')).output.trim();
  await eventually(async () => /running|degraded/.test(await state()), 'systemd to be up', 60_000);
  // systemd does so itself where it does not run in a container; without it no service sees its credentials.
  await run('mount', '--make-rshared', '/');
  await run('cp', `${GIVEN}/haproxy.env`, '/etc/default/haproxy');
  const page = await readDocument('deploy/README.md');
  const linesBelow = (heading: string) =>
    Array.from(section(page, heading).matchAll(/^ *```sh\n(.*?)^ *```$/gms), ([, lines = '']) => lines);
  const [installing = '', checking = '', undoing = ''] = linesBelow('## On a VM');
  const replacing = linesBelow('## Restart, upgrade, roll back').find((lines) =>
    lines.includes('--no-block'),
  );
  const followPage = (lines: string) => run('env', `--chdir=${GIVEN}/checkout`, 'sh', '-exc', lines);
  return {
    base: new URL(`https://127.0.0.1:${port}`),
    /** Of the instance a. */
    gatewayPort: port + 1,
    run,
    release: RELEASE,
    /** Runs the lines of the page that install the gateway and start the instance a. */
    async installRelease() {
      const ended = await followPage(installing);
      // For upgrade.sh, which reads the ports there.
      for (const name of ['a', 'b']) await run('cp', `${GIVEN}/${name}.env`, '/etc/music-gateway');
      return ended;
    },
    /** Runs the lines of the page that check the release. */
    checkRelease: () => followPage(checking),
    /** Runs those that give the kernel its own bounds for a connection. */
    undoBounds: () => followPage(undoing),
    /** Runs those that replace the only instance, `a`. */
    async replaceInstance() {
      await Bun.write(`${folder}/b.env`, variables({ PORT: port + 1, METRICS_PORT: port + 4 }));
      return followPage((replacing ?? '').replaceAll('0.2.0', '0.1.0'));
    },
    upgrade(release = RELEASE) {
      const environment = ['HEALTHY_SECONDS=2', 'START_SECONDS=10', 'XDG_RUNTIME_DIR=/run/user/0'];
      const script = `${RELEASE}/deploy/upgrade.sh`;
      return run('env', `--chdir=${GIVEN}`, ...environment, 'sh', script, release);
    },
    /** Installs a release with this source. Returns its folder. */
    async install(name: string, source: string) {
      const release = `${INSTALLED}/${name}`;
      await run('mkdir', '-p', `${release}/src`, `${release}/node_modules`);
      await Bun.write(`${folder}/${name}.ts`, source);
      await run('cp', `${GIVEN}/${name}.ts`, `${release}/src/index.ts`);
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

/** A checkout of the project as it is here, with what must not be copied. Another user's, as after `su`. */
async function makeCheckout(folder: string) {
  for (const path of await projectFiles()) if (path !== '.git') await cp(ROOT + path, `${folder}/${path}`);
  const git = ['git', '-C', folder, '-c', 'user.name=Test', '-c', 'user.email=test@example.com'];
  await $`${git} init --quiet && ${git} add --all && ${git} commit --quiet --message Release`;
  await Bun.write(`${folder}/.env`, 'LOG_LEVEL=debug\n');
  await Bun.write(`${folder}/node_modules/left/package.json`, '{}\n');
  await $`chown ${OTHER_USER}:${OTHER_USER} ${folder} ${folder}/.git`;
}

/** The text of an environment file. */
function variables(values: Readonly<Record<string, string | number>>): string {
  const lines = Object.entries(values).map(([name, value]) => `${name}=${value}\n`);
  return lines.join('');
}
