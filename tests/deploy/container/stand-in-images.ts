/** Images under the names that the project's files give, made of this machine's programs, so that no registry is needed. */

import { chown, cp, mkdir, symlink } from 'node:fs/promises';
import { $ } from 'bun';
import { ROOT } from '../../support/documents.ts';
import type { Podman } from './podman.ts';

const USER_ID = 1000;
const USERS = { root: 0, nginx: 101, redis: 999, bun: USER_ID };
const PROGRAMS = ['bun', 'redis-server', 'nginx', 'openssl', 'busybox'];
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const ENTRYPOINT = '/usr/local/bin/docker-entrypoint.sh';

/** Builds the gateway's image from the Containerfile, whose base is a stand-in that has these names as well. */
export async function buildImages(podman: Podman, gateway: string, names: readonly string[]): Promise<void> {
  const file = `${ROOT}Containerfile`;
  const [, base = ''] = /^FROM (\S+) /m.exec(await Bun.file(file).text()) ?? [];
  await importStandIn(podman, base);
  for (const name of names) await podman.run('tag', base, name);
  const build = ['build', '--pull-never', '--network', 'host', '--format', 'docker'];
  await podman.run(...build, '--tag', gateway, '--file', file, ROOT);
}

/** Imports an image with the programs, the libraries that they need, a shell and its tools. */
async function importStandIn(podman: Podman, name: string): Promise<void> {
  const root = `${podman.folder}/stand-in`;
  for (const program of PROGRAMS) {
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
  const files = {
    '/etc/passwd': users.map(([user, id]) => `${user}:x:${id}:${id}::/home/${user}:/bin/sh\n`).join(''),
    '/etc/nsswitch.conf': 'hosts: files dns\n',
    '/etc/group': users.map(([user, id]) => `${user}:x:${id}:\n`).join(''),
    // As in the real image of Bun: what is not a program is an argument of Bun.
    [ENTRYPOINT]: `command -v "$1" >/dev/null || set -- bun "$@"\nexec "$@"\n`,
    [CERTIFICATES]: Bun.file(CERTIFICATES),
    '/usr/lib/ssl/openssl.cnf': Bun.file('/etc/ssl/openssl.cnf'),
  };
  for (const [path, content] of Object.entries<string | Bun.BunFile>(files))
    await Bun.write(root + path, content);
  await mkdir(`${root}/home/bun/app`, { recursive: true });
  await chown(`${root}/home/bun`, USER_ID, USER_ID);
  await $`tar -C ${root} --numeric-owner -cf ${root}.tar .`;
  const changes = [
    // What this machine trusts, the build trusts as well.
    `ENV NODE_EXTRA_CA_CERTS=${CERTIFICATES}`,
    'WORKDIR /home/bun/app',
    `ENTRYPOINT ["sh", "${ENTRYPOINT}"]`,
    'CMD ["/usr/local/bin/bun"]',
  ].flatMap((change) => ['--change', change]);
  await podman.run('import', '--quiet', ...changes, `${root}.tar`, name);
}
