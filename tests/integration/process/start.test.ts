import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { SETTINGS, type Started, start, startInVain } from '../../support/bun-run-start.ts';
import { clientKeyPair } from '../../support/client-keys.ts';
import { freePorts } from '../../support/free-ports.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { ORIGIN, SIGNED_IN } from '../../support/world.ts';

describe('bun run start', () => {
  let metricsPort: number;
  let gateway: Started;
  let port: string;
  beforeAll(async () => {
    metricsPort = await freePorts(2);
    gateway = await start({
      HOST: '0.0.0.0',
      METRICS_PORT: String(metricsPort),
      TRUSTED_PROXIES: '127.0.0.1',
      NODE_TLS_REJECT_UNAUTHORIZED: '0',
    });
    port = new URL(gateway.url).port;
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  it('logs its warnings, and in one line where it listens and for which origins', () => {
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    const ineffective = 'TRUSTED_PROXIES has no effect without FORWARD_CLIENT_ADDRESS=true';
    const unchecked = 'NODE_TLS_REJECT_UNAUTHORIZED is 0: certificates of other servers are not checked';
    expect(gateway.lines).toEqual([
      { level: 'warn', time, msg: ineffective },
      { level: 'warn', time, msg: unchecked },
      { level: 'info', time, msg: `music-gateway listens on ${gateway.url} for http://studio.test` },
    ]);
  });

  it('serves the gateway on HOST, and metrics on loopback alone wherever HOST is', async () => {
    expect((await fetch(`http://127.0.0.2:${port}/api/health`)).status).toBe(200);
    expect((await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).status).toBe(200);
    await expect(fetch(`http://127.0.0.2:${metricsPort}/metrics`)).rejects.toThrow();
  });

  it('serves metrics on METRICS_HOST', async () => {
    const other = String(metricsPort + 1);
    await using _ = await start({ METRICS_PORT: other, METRICS_HOST: '0.0.0.0' });
    expect((await fetch(`http://127.0.0.2:${other}/metrics`)).status).toBe(200);
  });

  it('names a port that is taken instead of sharing it', async () => {
    const onPort = await startInVain({ ...SETTINGS, PORT: port });
    expect(onPort.errors).toContain(`error: port ${port} is taken (PORT)\n`);
    const onMetricsPort = await startInVain({ ...SETTINGS, METRICS_PORT: String(metricsPort) });
    expect(onMetricsPort.errors).toContain(`error: port ${metricsPort} is taken (METRICS_PORT)\n`);
    expect([onPort.status, onMetricsPort.status]).toEqual([1, 1]);
  });
});

describe('bun run start with a bad configuration', () => {
  it('prints once the names of all settings, where one may be misspelled', async () => {
    const { status, errors } = await startInVain({
      ...SETTINGS,
      ALLOWED_ORIGINS: '',
      ALLOWED_ORIGIN: ORIGIN,
    });
    expect(status).toBe(1);
    const [missing, names, ...others] = errors.split('\n').filter((line) => line.startsWith('error: '));
    expect(missing).toBe('error: ALLOWED_ORIGINS is required and not set');
    expect(names).toStartWith('error: the names of all settings are ALLOWED_ORIGINS, COOKIE_KEYS, ');
    expect(names).toEndWith(', UPSTREAM_URL');
    expect(others).toEqual([]);
  });

  it('prints every problem at once without a stack trace or a secret, and exits with 1', async () => {
    const { privateJwk, secrets } = clientKeyPair('ES256');
    const { status, output, errors } = await startInVain({
      NODE_ENV: 'production',
      NODE_TLS_REJECT_UNAUTHORIZED: '0',
      PORT: 'none',
      ALLOWED_ORIGINS: 'http://studio.test/',
      TRUSTED_PROXIES: '127.0.0.1',
      IDP_CLIENT_SECRET: 's3cr3t',
      IDP_CLIENT_KEY: `${privateJwk}}`,
      TIMEOUT_READ_MS: '-1',
      COOKIE_SAME_SITE: 'none',
    });
    expect([status, output]).toEqual([1, '']);
    const printed = errors.split('\n').filter((line) => /^(?:error|warning): /.test(line));
    expect(printed.map((line) => line.split(' ', 2).join(' '))).toEqual([
      'warning: TRUSTED_PROXIES',
      'error: ALLOWED_ORIGINS:',
      'error: PORT',
      'error: UPSTREAM_URL',
      'error: IDP_URL',
      'error: IDP_CLIENT_ID',
      'error: IDP_CLIENT_SECRET',
      'error: IDP_REDIRECT_URI',
      'error: TIMEOUT_READ_MS',
      'error: COOKIE_SAME_SITE',
      'error: IDP_CLIENT_KEY',
      'error: NODE_TLS_REJECT_UNAUTHORIZED',
      'error: the',
    ]);
    expect(errors).not.toContain('    at ');
    for (const secret of ['s3cr3t', ...secrets]) expect(errors).not.toContain(secret);
  });

  it.each([
    ['METRICS_', '192.0.2.1'],
    ['METRICS_', 'metrics.invalid'],
    ['METRICS_', 'http://127.0.0.1'],
    ['', 'gateway.invalid'],
  ])('names a %sHOST on which it cannot listen: %s', async (prefix, host) => {
    const port = String(await freePorts(1));
    const settings = { ...SETTINGS, [`${prefix}PORT`]: port, [`${prefix}HOST`]: host };
    const { status, errors } = await startInVain(settings);
    expect(status).toBe(1);
    const names = `${prefix}HOST and ${prefix}PORT`;
    const problem = `^error: cannot listen on ${host}:${port} \\(E\\w+, ${names}\\)\\n$`;
    expect(errors).toMatch(new RegExp(problem, 'm'));
  });
});

it('bun run start allows more calls in flight than the 256 of Bun’s default', async () => {
  const upstream = new ScriptedUpstream();
  const release = Promise.withResolvers<void>();
  upstream.on('POST /v1/music', () => release.promise.then(() => new Response('audio')));
  upstream.on('GET /v1/me', () => Response.json({ name: 'Ada' }));
  await using gateway = await start({
    UPSTREAM_URL: upstream.upstreamUrl,
    MAX_IN_FLIGHT_PER_SESSION: '0',
    MAX_GENERATIONS_PER_SESSION: '0',
  });
  const headers = { origin: ORIGIN, cookie: SIGNED_IN, 'content-type': 'application/json' };
  const body = JSON.stringify({ model: 'm', prompt: 'p', music_length_ms: 3000 });
  const options = JSON.stringify({ method: 'POST', headers, body });
  // This process has the default limit too, so the generations come from another one.
  const client = Bun.spawn([process.execPath, '-e', GENERATIONS, gateway.url, options], {
    env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: '400' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await upstream.arrived('POST /v1/music', 300);
  const session = await fetch(`${gateway.url}/api/auth/session`, { headers });
  expect(await session.json()).toEqual({ name: 'Ada' });
  release.resolve();
  expect(await client.stdout.text()).toBe('audio'.repeat(300));
  await upstream.stop();
});

const GENERATIONS = `
  const [url, options] = process.argv.slice(-2);
  const send = () => fetch(url + '/api/music/generate', JSON.parse(options)).then((response) => response.text());
  process.stdout.write((await Promise.all(Array.from({ length: 300 }, send))).join(''));
`;
