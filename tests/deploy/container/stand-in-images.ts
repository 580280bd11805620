/** Images under the names that the project's files give, made of this machine's programs, so that no registry is needed. */

import { chown, cp, mkdir, symlink } from 'node:fs/promises';
import { $ } from 'bun';
import { ROOT } from '../../support/documents.ts';
import type { Podman } from './podman.ts';

const USER_ID = 1000;
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const ENTRYPOINT = '/usr/local/bin/docker-entrypoint.sh';
const USERS = { root: 0, nginx: 101, redis: 999, bun: USER_ID };

type Files = Readonly<Record<string, string | Bun.BunFile>>;

/** Builds the gateway's image from the Containerfile, whose base is a stand-in. */
export async function buildGateway(podman: Podman, tag: string): Promise<void> {
  const file = `${ROOT}Containerfile`;
  const base = /^FROM (\S+:([\d.]+)-slim) /m.exec(await Bun.file(file).text());
  if (base?.[2] !== Bun.version) throw new Error(`the base is ${base?.[1]}, and this is Bun ${Bun.version}`);
  const files = {
    // As in the real image: what is not a program is an argument of Bun.
    [ENTRYPOINT]: `command -v "$1" >/dev/null || set -- bun "$@"\nexec "$@"\n`,
    [CERTIFICATES]: Bun.file(CERTIFICATES),
  };
  const changes = [
    // What this machine trusts, the build trusts as well.
    `ENV NODE_EXTRA_CA_CERTS=${CERTIFICATES}`,
    'WORKDIR /home/bun/app',
    `ENTRYPOINT ["sh", "${ENTRYPOINT}"]`,
    'CMD ["/usr/local/bin/bun"]',
  ];
  await importImage(podman, String(base[1]), ['bun'], files, changes);
  const build = ['build', '--pull-never', '--network', 'host', '--format', 'docker'];
  await podman.run(...build, '--tag', tag, '--file', file, ROOT);
}

/** Imports an image with these programs of this machine, the libraries that they need, a shell and its tools. */
export async function importImage(
  podman: Podman,
  name: string,
  programs: readonly string[],
  files: Files = {},
  ownChanges: readonly string[] = [],
): Promise<void> {
  const root = `${podman.folder}/with-${programs[0]}`;
  for (const program of [...programs, 'busybox']) {
    const path = program === 'bun' ? process.execPath : Bun.which(program);
    // None for a program that is linked statically, which ldd takes for a failure.
    const libraries = (await $`ldd ${path}`.nothrow().quiet().text()).match(/\/\S+/g) ?? [];
    for (const [from, to] of [[path, `/usr/local/bin/${program}`], ...libraries.map((each) => [each, each])])
      await cp(String(from), `${root}${to}`, { dereference: true });
  }
  await mkdir(`${root}/bin`);
  const tools = (await $`busybox --list`.text()).trim().split('\n');
  for (const tool of tools) await symlink('/usr/local/bin/busybox', `${root}/bin/${tool}`);
  const users = Object.entries(USERS);
  const usual = {
    '/etc/passwd': users.map(([user, id]) => `${user}:x:${id}:${id}::/home/${user}:/bin/sh\n`).join(''),
    '/etc/nsswitch.conf': 'hosts: files dns\n',
    '/etc/group': users.map(([user, id]) => `${user}:x:${id}:\n`).join(''),
  };
  const written = Object.entries({ ...usual, ...files });
  for (const [path, content] of written) await Bun.write(root + path, content);
  await mkdir(`${root}/home/bun/app`, { recursive: true });
  await chown(`${root}/home/bun`, USER_ID, USER_ID);
  await $`tar -C ${root} --numeric-owner -cf ${root}.tar .`;
  const changes = ownChanges.flatMap((change) => ['--change', change]);
  await podman.run('import', '--quiet', ...changes, `${root}.tar`, name);
}
