/** An image under the name of the Containerfile's base, made of this machine's own Bun, so that no registry is needed. */

import { chmod, chown, cp, mkdir, symlink } from 'node:fs/promises';
import { $ } from 'bun';
import type { Podman } from './podman.ts';

const USER_ID = 1000;
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const ENTRYPOINT = '/usr/local/bin/docker-entrypoint.sh';
const FILES = {
  '/etc/passwd': `root:x:0:0::/root:/bin/sh\nbun:x:${USER_ID}:${USER_ID}::/home/bun:/bin/sh\n`,
  '/etc/group': `root:x:0:\nbun:x:${USER_ID}:\n`,
  // As in the real image: what is not a program is an argument of Bun.
  [ENTRYPOINT]: `#!/bin/sh\ncommand -v "$1" >/dev/null || set -- bun "$@"\nexec "$@"\n`,
  [CERTIFICATES]: Bun.file(CERTIFICATES),
};

export async function importBase(podman: Podman, name: string): Promise<void> {
  const version = /:([\d.]+)-slim$/.exec(name)?.[1];
  if (version !== Bun.version) throw new Error(`the base is ${name}, and this is Bun ${Bun.version}`);
  const root = `${podman.folder}/base`;
  const programs = { '/usr/local/bin/bun': process.execPath, '/bin/busybox': Bun.which('busybox') ?? '' };
  for (const [path, program] of Object.entries(programs)) {
    // None for a program that is linked statically, which ldd takes for a failure.
    const libraries = (await $`ldd ${program}`.nothrow().quiet().text()).match(/\/\S+/g) ?? [];
    for (const [from, to] of [[program, path], ...libraries.map((each) => [each, each])])
      await cp(String(from), `${root}${to}`, { dereference: true });
  }
  const tools = (await $`busybox --list`.text()).trim().split('\n');
  for (const tool of tools) if (tool !== 'busybox') await symlink('busybox', `${root}/bin/${tool}`);
  for (const [path, content] of Object.entries(FILES)) await Bun.write(root + path, content);
  await chmod(root + ENTRYPOINT, 0o755);
  await mkdir(`${root}/home/bun/app`, { recursive: true });
  await chown(`${root}/home/bun`, USER_ID, USER_ID);
  await $`tar -C ${root} --numeric-owner -cf ${root}.tar .`;
  const changes = [
    'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    // What this machine trusts, the build trusts as well.
    `ENV NODE_EXTRA_CA_CERTS=${CERTIFICATES}`,
    'WORKDIR /home/bun/app',
    `ENTRYPOINT ["${ENTRYPOINT}"]`,
    'CMD ["/usr/local/bin/bun"]',
  ];
  const options = changes.flatMap((change) => ['--change', change]);
  await podman.run('import', '--quiet', ...options, `${root}.tar`, name);
}
