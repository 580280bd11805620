import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { clientKeyPair } from '../../support/client-keys.ts';
import { ROOT } from '../../support/documents.ts';
import { freePorts } from '../../support/free-ports.ts';
import { runToEnd } from '../../support/run-to-end.ts';
import { checkConfig, SETTINGS, type Started, start, startInVain } from './bun-run-start.ts';

describe('bun run start', () => {
  let settings: Record<'METRICS_PORT', string>;
  let gateway: Started;
  let port: string;
  beforeAll(async () => {
    settings = {
      ...{ HOST: '0.0.0.0', METRICS_PORT: String(await freePorts(1)) },
      ...{ TRUSTED_PROXIES: '127.0.0.1', NODE_TLS_REJECT_UNAUTHORIZED: '0' },
    };
    gateway = await start(settings);
    port = new URL(gateway.url).port;
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  it('logs the warnings of check-config, and in one line where it listens and for which origins', async () => {
    const warnings = [
      'TRUSTED_PROXIES has no effect without FORWARD_CLIENT_ADDRESS=true',
      'NODE_TLS_REJECT_UNAUTHORIZED is 0: certificates of other servers are not checked',
    ];
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    // Nor a warning that Bun’s default allows only 256 calls: the script sets BUN_CONFIG_MAX_HTTP_REQUESTS.
    expect(gateway.lines).toEqual([
      ...warnings.map((msg) => ({ level: 'warn', time, msg })),
      { level: 'info', time, msg: `music-gateway listens on ${gateway.url} for http://studio.test` },
    ]);
    const { status, output } = await checkConfig(settings);
    expect([status, ...output.split('\n', 2)]).toEqual([0, ...warnings.map((text) => `warning: ${text}`)]);
  });

  it('serves the gateway on HOST, and metrics on loopback alone wherever HOST is', async () => {
    const { METRICS_PORT } = settings;
    expect((await fetch(`http://127.0.0.2:${port}/api/health`)).status).toBe(200);
    expect((await fetch(`http://127.0.0.1:${METRICS_PORT}/metrics`)).status).toBe(200);
    await expect(fetch(`http://127.0.0.2:${METRICS_PORT}/metrics`)).rejects.toThrow();
  });

  it('ends with 1, and names the port that is taken', async () => {
    const places = { PORT: port, METRICS_PORT: settings.METRICS_PORT };
    for (const [name, taken] of Object.entries(places)) {
      const { status, errors } = await startInVain({ ...SETTINGS, [name]: taken });
      expect([status, errors]).toEqual([
        1,
        expect.stringContaining(`error: port ${taken} is taken (${name})\n`),
      ]);
    }
  });

  it('prints every problem at once like check-config, without a stack trace or a secret', async () => {
    const { privateJwk, secrets } = clientKeyPair('ES256');
    const wrong = {
      ...SETTINGS,
      ...{ NODE_ENV: 'production', NODE_TLS_REJECT_UNAUTHORIZED: '0', IDP_URL: '', TRUSTED_PROXIES: '::1' },
      ...{ IDP_CLIENT_SECRET: 's3cr3t', IDP_CLIENT_KEY: `${privateJwk}}` },
    };
    const [started, checked] = await Promise.all([startInVain(wrong), checkConfig(wrong, '--connect')]);
    expect([started.status, started.output]).toEqual([1, '']);
    const printed = started.errors.split('\n').filter((line) => /^(?:error|warning): /.test(line));
    expect(printed.map((line) => line.split(' ', 2).join(' '))).toEqual([
      'warning: TRUSTED_PROXIES',
      'error: IDP_URL',
      'error: IDP_CLIENT_SECRET',
      'error: IDP_CLIENT_KEY',
      'error: NODE_TLS_REJECT_UNAUTHORIZED',
      'error: the',
    ]);
    expect([checked.status, checked.output.trimEnd().split('\n')]).toEqual([1, printed]);
    expect(started.errors).not.toContain('    at ');
    for (const secret of ['s3cr3t', ...secrets]) expect(started.errors).not.toContain(secret);
  });

  it('loads nothing that only some settings or requests need', async () => {
    const environment = { ...SETTINGS, LOG_LEVEL: 'silent' };
    const { output } = await runToEnd([process.execPath, '-e', LOADED], { cwd: ROOT, environment });
    const files: string[] = JSON.parse(output);
    expect(files).toContain(`${ROOT}src/gateway/gateway.ts`);
    const optional =
      /\/(?:prom-client|oauth4webapi|jose\/dist\/webapi\/(?:index\.js|key)|sdk-trace|gateway\/openapi|src\/check)\b/;
    expect(files.filter((file) => optional.test(file))).toEqual([]);
  });
});

const LOADED = `
  await import('./src/index.ts');
  console.log(JSON.stringify(Object.keys(require.cache)));
  process.exit(0);
`;
