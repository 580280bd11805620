import { afterAll, beforeAll, expect, it } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import manifest from '../../../package.json';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { isUp } from '../../support/is-up.ts';
import { describeWith, program, ROOT } from '../../support/requirements.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { ORIGIN, request } from '../../support/world.ts';
import { Podman } from './podman.ts';
import { buildGateway } from './stand-in-images.ts';

const PROJECT = fileURLToPath(new URL('../../..', import.meta.url));
const IMAGE = 'localhost/music-gateway:test';
const UNWANTED = [
  ...['.env', '.git', 'tests', 'src/client', 'src/demo', 'src/gateway/openapi', 'src/README.md'],
  ...Object.keys(manifest.devDependencies).map((name) => `node_modules/${name}`),
];
/** All that a careful operator would set. Not even /tmp or /dev/shm is writable. */
const RESTRICTIONS = [
  ...['--read-only', '--read-only-tmpfs=false', '--ipc', 'none'],
  ...['--cap-drop=all', '--security-opt', 'no-new-privileges'],
  ...['--memory', '256m', '--memory-swap', '256m', '--pids-limit', '64'],
  // Podman's own are higher than some machines allow.
  ...['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=4096:4096'],
];

describeWith([program('podman'), program('runc'), program('busybox'), ROOT], 'the container', () => {
  const key = randomBytes(32).toString('base64url');
  let podman: Podman;
  let upstream: ScriptedUpstream;
  let url: string;
  let options: string[];
  let onHost: string[];

  beforeAll(async () => {
    podman = new Podman();
    upstream = new ScriptedUpstream();
    await buildGateway(podman, IMAGE);
    await Bun.write(`${podman.folder}/cookie-keys`, key);
    await podman.run('secret', 'create', 'cookie-keys', `${podman.folder}/cookie-keys`);
    const port = await freePorts(1);
    url = `http://127.0.0.1:${port}`;
    const settings = {
      PORT: String(port),
      HOST: '127.0.0.1',
      UPSTREAM_URL: upstream.upstreamUrl,
      IDP_URL: upstream.identityProviderUrl,
      IDP_CLIENT_ID: 'studio',
      IDP_REDIRECT_URI: `${ORIGIN}/callback`,
      ALLOWED_ORIGINS: ORIGIN,
      // At its usual place, in /run/secrets, Podman 4.3 cannot mount it when the disk is read-only.
      COOKIE_KEYS_FILE: '/secrets/cookie-keys',
    };
    options = [
      ...['--pull', 'never', '--log-driver', 'k8s-file', ...RESTRICTIONS],
      ...['--secret', 'cookie-keys,target=/secrets/cookie-keys'],
      ...Object.entries(settings).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
    ];
    onHost = [...options, '--network', 'host'];
  }, 180_000);

  afterAll(async () => {
    await podman[Symbol.asyncDispose]();
    await upstream.stop();
  }, 60_000);

  /** Starts a container, whose port the one before has to have left. */
  async function start() {
    const id = await podman.run('run', '--detach', ...onHost, IMAGE);
    await eventually(() => isUp(url), 'its start');
    return {
      id,
      [Symbol.asyncDispose]: async () => void (await podman.run('rm', '--force', '--time', '0', id)),
    };
  }

  it('is labelled as package.json says', async () => {
    const labels = JSON.parse(await podman.run('image', 'inspect', '--format', '{{json .Labels}}', IMAGE));
    const { name: title, description, version } = manifest;
    for (const [label, text] of Object.entries({ title, description, version }))
      expect(labels[`org.opencontainers.image.${label}`]).toBe(text);
  });

  it('holds nothing that does not run in it, and nothing that its user could change', async () => {
    const inside = (command: string) => podman.run('run', '--rm', ...onHost, IMAGE, 'sh', '-c', command);
    const held = await inside('ls -d .* * src/* src/gateway/* node_modules/* node_modules/@*/*');
    const paths = held.split('\n');
    expect(paths).toEqual(expect.arrayContaining(['src/index.ts', 'node_modules/elysia']));
    expect(UNWANTED.filter((path) => paths.includes(path))).toEqual([]);
    expect(await inside('find . ! -user root')).toBe('');
    expect(await inside('id -u')).not.toBe('0');
  });

  it('is healthy when it responds, and unhealthy when it hangs', async () => {
    await using container = await start();
    const check = async () => (await podman.try('healthcheck', 'run', container.id)).status;
    expect(await check()).toBe(0);
    await podman.run('kill', '--signal', 'STOP', container.id);
    const hanging = await check();
    await podman.run('kill', '--signal', 'CONT', container.id);
    expect(hanging).not.toBe(0);
  });

  it('may have its connections bounded as the operating page says, which check-config asks for', async () => {
    const page = await readFile(`${PROJECT}/deploy/README.md`, 'utf8');
    const named = page.matchAll(/--sysctl (\S+)="(.+?)"/g);
    const bounds = Array.from(named, ([, name, sizes]) => `${name} = ${sizes}`);
    const warns = async (tcp: readonly string[]) => {
      const sysctls = tcp.flatMap((line) => ['--sysctl', line.replaceAll(' = ', '=')]);
      const run = ['run', '--rm', ...options, '--network', 'none', ...sysctls];
      const { status, output } = await podman.try(...run, IMAGE, 'bun', 'run', 'check-config');
      expect([status, output.includes('ok: the gateway would start')]).toEqual([0, true]);
      return output.includes('warning: net.ipv4.tcp_wmem');
    };
    expect(await warns(['net.ipv4.tcp_wmem = 4096 16384 4194304'])).toBe(true);
    expect(await warns(bounds)).toBe(false);
    // A machine gets the same.
    const drop = await readFile(`${PROJECT}/deploy/60-music-gateway.conf`, 'utf8');
    expect(drop.split('\n').filter((line) => line && !line.startsWith('#'))).toEqual(bounds);
  });

  it('signs in under a key from a secret, and stops at SIGTERM', async () => {
    await using container = await start();
    upstream
      .on('POST /oauth/token', () => Response.json({ access_token: 'identity' }))
      .on('POST /v1/auth/idp', () => Response.json({ access_token: 'access-1', refresh_token: 'refresh-1' }));
    const grant = { code: 'code', code_verifier: 'v'.repeat(43) };
    const cookies = (await request(`${url}/api/auth/idp`, { json: grant })).headers.getSetCookie();
    expect(cookies.map((each) => /; Secure(;|$)/.test(each))).toEqual([true, true]);
    expect(cookies.join()).not.toContain('access-1');
    // Whoever may inspect the container sees the path alone.
    expect(await podman.run('inspect', container.id)).not.toContain(key);
    // What the gateway does first: integration/process/stop. With SIGKILL it would be 137.
    await podman.run('stop', '--time', '20', container.id);
    expect(await podman.run('inspect', '--format', '{{.State.ExitCode}}', container.id)).toBe('0');
  });
});
