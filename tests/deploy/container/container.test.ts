import { afterAll, beforeAll, expect, it } from 'bun:test';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import manifest from '../../../package.json';
import { eventually } from '../../support/eventually.ts';
import { isUp } from '../../support/is-up.ts';
import { releasedBody } from '../../support/released-body.ts';
import { describeWith, program, ROOT } from '../../support/requirements.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { request } from '../../support/world.ts';
import { restricted } from './container.ts';
import { Podman } from './podman.ts';
import { importBase } from './stand-in-base.ts';

const PROJECT = fileURLToPath(new URL('../../..', import.meta.url));
const IMAGE = 'localhost/music-gateway:test';
/** In 256 MB the gateway streams 78. */
const GENERATIONS_AT_ONCE = 40;
const ORDER = { model: 'm', prompt: 'p', music_length_ms: 3000 };

describeWith([program('podman'), program('runc'), program('busybox'), ROOT], 'the container', () => {
  let podman: Podman;
  let upstream: ScriptedUpstream;
  let container: Awaited<ReturnType<typeof restricted>>;
  let id: string;
  let cookie: string;

  beforeAll(async () => {
    podman = new Podman();
    upstream = new ScriptedUpstream();
    const base = /^FROM (\S+:\S+)/m.exec(await readFile(`${PROJECT}/Containerfile`, 'utf8'))?.[1] ?? '';
    await importBase(podman, base);
    const build = ['build', '--pull-never', '--network', 'host', '--format', 'docker'];
    await podman.run(...build, '--tag', IMAGE, '--file', `${PROJECT}/Containerfile`, PROJECT);
    container = await restricted(podman, upstream);
    id = await podman.run('run', '--detach', ...container.options, IMAGE);
    await eventually(() => isUp(container.url), 'its start').catch(async (error) => {
      const { output, errors } = await podman.try('logs', id);
      throw new Error(`${output}${errors}`, { cause: error });
    });
  }, 180_000);

  afterAll(async () => {
    await podman[Symbol.asyncDispose]();
    await upstream.stop();
  }, 60_000);

  const inspect = (field: string) => podman.run('inspect', '--format', `{{${field}}}`, id);
  const generate = (of = cookie) =>
    request(`${container.url}/api/music/generate`, { cookie: of, json: ORDER });

  it('is labelled as package.json says', async () => {
    const labels = JSON.parse(await podman.run('image', 'inspect', '--format', '{{json .Labels}}', IMAGE));
    const { name, description, version } = manifest;
    const label = (key: string) => labels[`org.opencontainers.image.${key}`];
    expect([label('title'), label('description'), label('version')]).toEqual([name, description, version]);
  });

  it('holds nothing that does not run in it, and nothing that its user could change', async () => {
    const inside = (command: string) =>
      podman.run('exec', id, 'sh', '-c', command).then((output) => output.split('\n'));
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

  it('runs without any right, and without a writable disk even for root', async () => {
    // By the kernel's own account of the process. See proc(5), `/proc/pid/status`.
    const status = await readFile(`/proc/${await inspect('.State.Pid')}/status`, 'utf8');
    const field = (name: string) =>
      new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1]?.split('\t') ?? [];
    const ids = [...field('Uid'), ...field('Gid')].map(Number);
    expect(ids).toHaveLength(8);
    expect(Math.min(...ids)).toBeGreaterThan(0);
    const sets = ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'];
    expect(sets.map((set) => Number.parseInt(field(set)[0] ?? '', 16))).toEqual([0, 0, 0, 0, 0]);
    expect(field('NoNewPrivs')).toEqual(['1']);
    const probes = ['/home/bun/app', '/tmp', '/dev/shm'].map((folder) => `! touch ${folder}/probe`);
    await podman.run('exec', '--user', '0', id, 'sh', '-c', probes.join(' && '));
  });

  it('signs in under a key from a podman secret, lists models and generates', async () => {
    upstream
      .on('POST /oauth/token', () => Response.json({ access_token: 'identity' }))
      .on('POST /v1/auth/idp', () => Response.json({ access_token: 'access-1', refresh_token: 'refresh-1' }))
      .on('GET /v1/models', ({ headers }) => new Response(headers.get('authorization')))
      .on('POST /v1/music', () => new Response('audio'));
    const grant = { code: 'code', code_verifier: 'v'.repeat(43) };
    const signedIn = await request(`${container.url}/api/auth/idp`, { json: grant });
    const cookies = signedIn.headers.getSetCookie();
    expect(cookies.map((each) => /; Secure(;|$)/.test(each))).toEqual([true, true]);
    expect(cookies.join()).not.toContain('access-1');
    cookie = cookies.map((each) => each.split(';', 1)[0]).join('; ');
    const models = await request(`${container.url}/api/music/models`, { cookie });
    expect(await models.text()).toBe('Bearer access-1');
    expect(await (await generate()).text()).toBe('audio');
    // Whoever may inspect the container sees the path alone.
    const known = await podman.run('inspect', id);
    expect([known.includes('COOKIE_KEYS_FILE'), known.includes(container.key)]).toEqual([true, false]);
  });

  it('is healthy when it responds, and unhealthy when it hangs', async () => {
    const well = await podman.try('healthcheck', 'run', id);
    expect(well).toMatchObject({ status: 0 });
    const pid = Number(await inspect('.State.Pid'));
    process.kill(pid, 'SIGSTOP');
    const hanging = await podman.try('healthcheck', 'run', id);
    process.kill(pid, 'SIGCONT');
    expect(hanging.status).not.toBe(0);
  });

  it(`delivers ${GENERATIONS_AT_ONCE} generations at once in 256 MB, while the health check runs`, async () => {
    const [piece, pieces] = [new Uint8Array(64 * 1024).fill(7), 100];
    upstream.on('POST /v1/music', () => {
      const body = async function* () {
        for (let sent = 0; sent < pieces; sent++) yield piece;
      };
      return new Response(body());
    });
    const sizeFor = async (_: unknown, user: number) =>
      (await (await generate(`svc_music_access=user-${user}`)).bytes()).length;
    const [sizes] = await Promise.all([
      Promise.all(Array.from({ length: GENERATIONS_AT_ONCE }, sizeFor)),
      podman.try('healthcheck', 'run', id),
    ]);
    expect(sizes).toEqual(Array(GENERATIONS_AT_ONCE).fill(pieces * piece.length));
  });

  it('checks its configuration before it is started', async () => {
    upstream
      .on('GET /v1/models', () => new Response('', { status: 401 }))
      .on('POST /oauth/token', () => Response.json({ error: 'invalid_grant' }, { status: 400 }));
    const check = ['bun', 'run', 'check-config', '--connect'];
    const { status, output } = await podman.try('run', '--rm', ...container.options, IMAGE, ...check);
    expect(output).toContain('ok: IDP_CLIENT_ID: the token endpoint');
    expect([output.includes('error: '), status]).toEqual([false, 0]);
  });

  it('finishes a generation on SIGTERM, and exits with 0', async () => {
    const body = releasedBody();
    upstream.on('POST /v1/music', () => new Response(body.stream));
    body.release('first ');
    const reading = (await generate()).text();
    const stopping = podman.run('stop', '--time', '20', id);
    await eventually(async () => !(await isUp(container.url)), 'it to refuse connections');
    body.release('last');
    body.end();
    expect(await reading).toBe('first last');
    await stopping;
    expect(await inspect('.State.ExitCode')).toBe('0');
  });
});
