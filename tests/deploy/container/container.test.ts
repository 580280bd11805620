import { afterAll, beforeAll, expect, it } from 'bun:test';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import manifest from '../../../package.json';
import { freePorts } from '../../support/free-ports.ts';
import { describeWith, itWith, machine, program } from '../../support/requirements.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import {
  diskProblem,
  drainProblem,
  GENERATIONS_AT_ONCE,
  healthProblem,
  memoryProblem,
  rightsProblem,
  serviceProblem,
} from './checks.ts';
import { type Container, restricted, startContainer } from './container.ts';
import { Podman } from './podman.ts';
import { keepSecret, newKey, opens, sealedCookies } from './secrets.ts';
import { importBase } from './stand-in-base.ts';
import { seccompProfile } from './unit-filter.ts';

const PROJECT = fileURLToPath(new URL('../../..', import.meta.url));
const IMAGE = 'localhost/music-gateway:test';

const ROOT = machine('the rights of root', process.getuid?.() === 0);
const REQUIREMENTS = [program('podman'), program('runc'), program('busybox'), ROOT];

/** A gateway that keeps 20 MB for each call. */
const LEAKING = `const kept = []; const real = fetch;
globalThis.fetch = (...call) => { kept.push(Buffer.alloc(2e7, 1)); return real(...call) };
await import('./src/index.ts')`;

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
    [`delivers ${GENERATIONS_AT_ONCE} generations at once in 256 MB`, memoryProblem],
    ['finishes a generation on SIGTERM, and exits with 0', drainProblem],
  ])('%s', async (_, check) => {
    expect(await check(container)).toBeUndefined();
  });

  itWith(
    [program('systemd-analyze')],
    'works with no other system calls and sockets than the systemd unit allows',
    async () => {
      const unit = await readFile(`${PROJECT}/deploy/music-gateway@.service`, 'utf8');
      const start = async (name: string, text: string) => {
        const seccomp = `${podman.folder}/${name}.json`;
        await Bun.write(seccomp, JSON.stringify(await seccompProfile(text)));
        return startContainer(podman, IMAGE, upstream, ['--security-opt', `seccomp=${seccomp}`]);
      };
      const container = await start('unit', unit);
      expect(await serviceProblem(container)).toBeUndefined();
      expect(await memoryProblem(container)).toBeUndefined();
      expect(await drainProblem(container)).toBeUndefined();
      // The kernel holds it to what the unit says: Bun cannot do without these.
      await expect(start('no-epoll', unit.replace('~@', '~epoll_ctl @'))).rejects.toThrow('ended with');
      await expect(start('no-sockets', unit.replace('AF_INET ', 'AF_NETLINK '))).rejects.toThrow(
        'ended with',
      );
    },
  );

  it('takes its keys from podman secrets, so that a session survives a restart and a rotation', async () => {
    const [first, second] = [newKey(), newKey()];
    const start = async (keys: string) => {
      const container = await startContainer(podman, IMAGE, upstream, await keepSecret(podman, keys));
      return Object.assign(container, {
        end: () => podman.run('rm', '--force', '--time', '9', container.id),
      });
    };
    const before = await start(first);
    const cookies = await sealedCookies(before);
    expect(cookies).not.toContain('access-1');
    await before.end();
    const restarted = await start(first);
    expect(await opens(restarted, cookies)).toBe(true);
    await restarted.end();
    const rotated = await start(`${second},${first}`);
    expect(await opens(rotated, cookies)).toBe(true);
    const newer = await sealedCookies(rotated);
    await rotated.end();
    const last = await start(second);
    expect([await opens(last, newer), await opens(last, cookies)]).toEqual([true, false]);
    // Whoever may inspect the container sees the path alone.
    const known = await podman.run('inspect', last.id);
    expect([known.includes('COOKIE_KEYS_FILE'), known.includes(second)]).toEqual([true, false]);
    await last.end();
  });

  it('checks its configuration before it is started', async () => {
    upstream
      .on('GET /v1/models', () => new Response('', { status: 401 }))
      .on('POST /oauth/token', () => Response.json({ error: 'invalid_grant' }, { status: 400 }));
    const options = [...restricted(await freePorts(1), upstream), ...(await keepSecret(podman, newKey()))];
    const check = (...more: string[]) =>
      podman.try('run', '--rm', ...options, ...more, IMAGE, 'bun', 'run', 'check-config', '--connect');
    const well = await check();
    expect(well.output).toContain('ok: IDP_CLIENT_ID: the token endpoint');
    expect([well.output.includes('error: '), well.status]).toEqual([false, 0]);
    const wrong = await check('--env', 'COOKIE_KEYS_FILE=/secrets/none');
    expect(wrong.output).toContain('error: COOKIE_KEYS_FILE: /secrets/none cannot be read (ENOENT)\n');
    expect(wrong.status).toBe(1);
  });

  it('is killed when it takes more memory than it has', async () => {
    const file = `${podman.folder}/Leaking`;
    await Bun.write(file, `FROM ${IMAGE}\nCMD ${JSON.stringify(['bun', '-e', LEAKING])}\n`);
    const build = ['build', '--quiet', '--pull-never', '--format', 'docker', '--file', file];
    const image = await podman.run(...build, podman.folder);
    const leaking = await startContainer(podman, image, upstream);
    expect(await memoryProblem(leaking)).toBe('it ended with 137');
  });
});
