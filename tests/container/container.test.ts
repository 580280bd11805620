import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import manifest from '../../package.json';
import { describeWith, itWith, machine, program } from '../support/requirements.ts';
import { ScriptedUpstream } from '../support/scripted-upstream.ts';
import {
  diskProblem,
  drainProblem,
  healthProblem,
  memoryProblem,
  rightsProblem,
  serviceProblem,
} from './checks.ts';
import { type Container, type Restriction, startContainer } from './container.ts';
import { Podman } from './podman.ts';
import { importBase } from './stand-in-base.ts';
import { seccompProfile } from './unit-filter.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const IMAGE = 'localhost/music-gateway:test';

const ROOT = machine('the rights of root', process.getuid?.() === 0);
const REQUIREMENTS = [program('podman'), program('runc'), program('busybox'), ROOT];

/** Runs something in the gateway's process before the gateway itself. */
function patched(patch: string): string {
  return `CMD ${JSON.stringify(['bun', '-e', `${patch}; await import('./src/index.ts')`])}`;
}

const HANGS = 'it hangs, and the health check says that it is healthy';
const LEAKS = patched(
  'const kept = []; const real = fetch; globalThis.fetch = (...call) => { kept.push(Buffer.alloc(2e7, 1)); return real(...call) }',
);

describeWith(REQUIREMENTS, 'the container', () => {
  let podman: Podman;
  let upstream: ScriptedUpstream;
  let container: Container;

  beforeAll(async () => {
    podman = new Podman();
    upstream = new ScriptedUpstream();
    const base = /^FROM (\S+:\S+)/m.exec(await readFile(`${PROJECT}/Containerfile`, 'utf8'))?.[1] ?? '';
    await importBase(podman, base);
    const build = ['build', '--pull-never', '--network', 'host', '--format', 'docker'];
    await podman.run(...build, '--tag', IMAGE, '--file', `${PROJECT}/Containerfile`, PROJECT);
    container = await startContainer(podman, IMAGE, upstream);
  }, 180_000);

  afterAll(async () => {
    await podman[Symbol.asyncDispose]();
    await upstream.stop();
  }, 60_000);

  it('is labelled as package.json says', async () => {
    const labels = JSON.parse(await podman.run('image', 'inspect', '--format', '{{json .Labels}}', IMAGE));
    const { name, description, version } = manifest;
    const label = (key: string) => labels[`org.opencontainers.image.${key}`];
    expect([label('title'), label('description'), label('version')]).toEqual([name, description, version]);
  });

  it('holds nothing that does not run in it, and nothing that its user could change', async () => {
    const inside = (command: string) =>
      podman.run('exec', container.id, 'sh', '-c', command).then((output) => output.split('\n'));
    const held = await inside('ls -d .* * src/* src/gateway/* node_modules/* node_modules/@*/*');
    expect(held).toContain('src/index.ts');
    expect(held).toContain('node_modules/elysia');
    const unwanted = [
      ...['.env', '.git', 'tests', 'src/client', 'src/demo', 'src/gateway/openapi', 'src/README.md'],
      ...Object.keys(manifest.devDependencies).map((name) => `node_modules/${name}`),
    ];
    expect(unwanted.filter((path) => held.includes(path))).toEqual([]);
    expect(await inside('find . ! -user root')).toEqual(['']);
  });

  it.each([
    ['runs without any right', rightsProblem],
    ['runs without a writable disk', diskProblem],
    ['signs in, lists models and generates', serviceProblem],
    ['is healthy when it responds, and unhealthy when it hangs', healthProblem],
    ['delivers 50 generations at once in 256 MB', memoryProblem],
    [
      'finishes a generation on SIGTERM, and exits with 0',
      (container: Container) => drainProblem(container, 20),
    ],
  ])('%s', async (_, check) => {
    expect(await check(container)).toBeUndefined();
  });

  itWith(
    [program('systemd-analyze')],
    'works with no other system calls and sockets than the systemd unit allows',
    async () => {
      const unit = await readFile(`${PROJECT}/deploy/music-gateway.service`, 'utf8');
      const start = async (name: string, text: string) => {
        const seccomp = `${podman.folder}/${name}.json`;
        await Bun.write(seccomp, JSON.stringify(await seccompProfile(text)));
        return startContainer(podman, IMAGE, upstream, { seccomp });
      };
      const container = await start('unit', unit);
      expect(await serviceProblem(container)).toBeUndefined();
      expect(await memoryProblem(container)).toBeUndefined();
      expect(await drainProblem(container, 20)).toBeUndefined();
      // The kernel holds it to what the unit says: Bun cannot do without these.
      await expect(start('no-epoll', unit.replace('~@', '~epoll_ctl @'))).rejects.toThrow('ended with');
      await expect(start('no-sockets', unit.replace('AF_INET ', 'AF_UNIX '))).rejects.toThrow('ended with');
    },
  );

  describe('fails its check', () => {
    /** A container of the image with one thing made worse. */
    async function worse(...lines: string[]): Promise<Container> {
      const file = `${podman.folder}/Worse`;
      await Bun.write(file, [`FROM ${IMAGE}`, ...lines, ''].join('\n'));
      const build = ['build', '--quiet', '--pull-never', '--format', 'docker', '--file', file];
      return startContainer(podman, await podman.run(...build, podman.folder), upstream);
    }
    const drainSoon = (container: Container) => drainProblem(container, 2);
    const EXITS = patched("process.on('SIGTERM', () => process.exit(0))");

    it.each([
      ['when it runs as root', 'USER root', rightsProblem, 'user and group 0 0 0 0 0 0 0 0'],
      ['when it has no health check', 'HEALTHCHECK NONE', healthProblem, 'has no defined healthcheck'],
      ['when its health check always succeeds', 'HEALTHCHECK CMD true', healthProblem, HANGS],
      ['when its health check always fails', 'HEALTHCHECK CMD false', healthProblem, 'says: unhealthy'],
      ['when it takes more memory than it has', LEAKS, memoryProblem, 'it ended with 137'],
      ['when it does not hear SIGTERM', 'CMD bun src/index.ts; true', drainSoon, 'exit status 137'],
      ['when it does not drain', EXITS, drainSoon, 'in flight arrived as: '],
    ])('%s', async (_, line, check, problem) => {
      expect(await check(await worse(line))).toContain(problem);
    });

    it.each<[Restriction, typeof diskProblem, string]>([
      ['disk', diskProblem, '/home/bun/app is writable'],
      ['capabilities', rightsProblem, 'CapBnd is 00000000800405fb'],
      ['privileges', rightsProblem, 'it can gain privileges'],
    ])('when it is started without the restriction of %s', async (restriction, check, problem) => {
      const container = await startContainer(podman, IMAGE, upstream, { without: restriction });
      expect(await check(container)).toBe(problem);
    });

    it.each([
      ['a writable disk', 'touch started && exec bun src/index.ts', 'Read-only file system'],
      ['a capability', 'chroot / bun /home/bun/app/src/index.ts', 'Operation not permitted'],
    ])('when it needs %s', async (_, command, problem) => {
      await expect(worse('USER root', `CMD ${command}`)).rejects.toThrow(problem);
    });
  });
});
