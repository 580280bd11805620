import { afterAll, expect, it } from 'bun:test';
import { clientKeyPair } from '../../support/client-keys.ts';
import { freePorts } from '../../support/free-ports.ts';
import { SETTINGS } from '../../support/gateway-process.ts';
import { runScript, start } from './bun-run-start.ts';

const CLOSING = 'bun run check-config tells more';
const WARNED_OF = {
  HOST: '0.0.0.0',
  TRUSTED_PROXIES: '127.0.0.1',
  NODE_TLS_REJECT_UNAUTHORIZED: '0',
  METRICS_PORT: String(await freePorts(1)),
};
const gateway = await start(WARNED_OF);
afterAll(() => gateway[Symbol.asyncDispose]());
const { port } = new URL(gateway.url);

it('bun run start logs its warnings, that check-config tells more, where it listens and for which origins', async () => {
  const warnings = [
    'TRUSTED_PROXIES has no effect without FORWARD_CLIENT_ADDRESS=true or SAME_ORIGIN=true',
    'NODE_TLS_REJECT_UNAUTHORIZED is 0: certificates of other servers are not checked',
  ];
  const origins = SETTINGS.ALLOWED_ORIGINS.replace(',', ', ');
  // Nor a warning that Bun’s default allows only 256 calls: the script sets BUN_CONFIG_MAX_HTTP_REQUESTS.
  expect(gateway.lines).toMatchObject([
    ...[...warnings, CLOSING].map((msg) => ({ level: 'warn', msg })),
    { level: 'info', msg: `music-gateway listens on ${gateway.url} for ${origins}` },
  ]);
  const { status, output } = await runScript(['check-config'], WARNED_OF);
  expect([status, ...output.split('\n', 2)]).toEqual([0, ...warnings.map((text) => `warning: ${text}`)]);
});

it('bun run start serves the gateway on HOST, and metrics on loopback alone wherever HOST is', async () => {
  const metrics = (host: string) => fetch(`http://${host}:${WARNED_OF.METRICS_PORT}/metrics`);
  expect((await fetch(`http://127.0.0.2:${port}/api/health`)).status).toBe(200);
  // Without this type, Prometheus would not know the format.
  expect((await metrics('127.0.0.1')).headers.get('content-type')).toStartWith('text/plain; version=0.0.4');
  await expect(metrics('127.0.0.2')).rejects.toThrow();
});

it('bun run start ends with 1, and names the port that is taken', async () => {
  for (const [name, taken] of Object.entries({ PORT: port, METRICS_PORT: WARNED_OF.METRICS_PORT })) {
    const { status, errors } = await runScript(['start'], { [name]: taken });
    const error = expect.stringContaining(`error: port ${taken} is taken (${name})\n`);
    expect([status, errors]).toEqual([1, error]);
  }
});

it('bun run start prints every problem at once like check-config, without a stack trace or a secret', async () => {
  const { privateJwk, secrets } = await clientKeyPair('ES256');
  const wrong = {
    NODE_ENV: 'production',
    NODE_TLS_REJECT_UNAUTHORIZED: '0',
    IDP_URL: '',
    TRUSTED_PROXIES: '::1',
    IDP_CLIENT_SECRET: 's3cr3t',
    IDP_CLIENT_KEY: `${privateJwk}}`,
  };
  const [started, checked] = await Promise.all([
    runScript(['start'], wrong),
    runScript(['check-config', '--connect'], wrong),
  ]);
  expect([started.status, started.output]).toEqual([1, '']);
  const printed = started.errors.split('\n').filter((line) => /^(?:error|warning): /.test(line));
  expect(printed.splice(1, 1)).toEqual([`warning: ${CLOSING}`]);
  expect(printed.map((line) => line.split(' ', 2)[1])).toEqual(
    'TRUSTED_PROXIES IDP_URL IDP_CLIENT_SECRET IDP_CLIENT_KEY NODE_TLS_REJECT_UNAUTHORIZED the'.split(' '),
  );
  expect([checked.status, checked.output.trimEnd().split('\n')]).toEqual([1, printed]);
  for (const hidden of ['    at ', 's3cr3t', ...secrets]) expect(started.errors).not.toContain(hidden);
});

it('bun run keys prints a new key of 32 bytes', async () => {
  const keys = await Promise.all([1, 2].map(() => runScript(['keys'], {})));
  const [first, second] = keys.map(({ output }) => output.trim());
  expect(first).toMatch(/^[\w-]{43}$/);
  expect(second).not.toBe(first);
});
