import { afterAll, expect, it } from 'bun:test';
import manifest from '../../../package.json';
import { memoryLimitBytes } from '../../../src/gateway/settings/memory.ts';
import { clientKeyPair } from '../../support/client-keys.ts';
import { freePorts } from '../../support/free-ports.ts';
import { SETTINGS } from '../../support/gateway-process.ts';
import { runScript, start } from './bun-run-start.ts';

const CLOSING = 'bun run check-config tells more';
const KEY = Buffer.alloc(32).toString('base64url');
const MEMORY = `${Math.round(memoryLimitBytes() / 1024 ** 2)} MiB of memory`;
const OF_ALL = `${SETTINGS.ALLOWED_ORIGINS.replace(',', ', ')}: version ${manifest.version}`;
const WARNED_OF = {
  HOST: '0.0.0.0',
  TRUSTED_PROXIES: '127.0.0.1',
  NODE_TLS_REJECT_UNAUTHORIZED: '0',
  COOKIE_KEY: KEY,
  METRICS_PORT: String(await freePorts(1)),
};
const gateway = await start(WARNED_OF);
afterAll(() => gateway[Symbol.asyncDispose]());
const { port } = new URL(gateway.url);

it('bun run start logs its warnings, that check-config tells more, where it listens and for which origins', async () => {
  const warnings = [
    'TRUSTED_PROXIES has no effect without FORWARD_CLIENT_ADDRESS=true or SAME_ORIGIN=true',
    'NODE_TLS_REJECT_UNAUTHORIZED is 0: certificates of other servers are not checked',
    'COOKIE_KEY is not a setting: is COOKIE_KEYS meant?',
  ];
  const facts = `${OF_ALL}, not production, cookies not sealed, ${MEMORY}, without Redis`;
  // Nor a warning that Bun’s default allows only 256 calls: the script sets BUN_CONFIG_MAX_HTTP_REQUESTS.
  expect(gateway.lines).toMatchObject([
    ...[...warnings, CLOSING].map((msg) => ({ level: 'warn', msg })),
    { level: 'info', msg: `music-gateway listens on ${gateway.url} for ${facts}` },
  ]);
  const { status, output } = await runScript(['check-config'], WARNED_OF);
  expect([status, ...output.split('\n', warnings.length)]).toEqual([
    0,
    ...warnings.map((text) => `warning: ${text}`),
  ]);
});

it('bun run start says that an instance is in production, seals its cookies and has Redis', async () => {
  const settings = { NODE_ENV: 'production', COOKIE_KEYS: KEY, REDIS_URL: 'redis://127.0.0.1:1' };
  await using other = await start(settings);
  const facts = `${OF_ALL}, production, cookies sealed, ${MEMORY}, with Redis`;
  const msg = `music-gateway listens on ${other.url} for ${facts}`;
  expect(other.lines).toContainEqual(expect.objectContaining({ msg }));
});

it('bun run start says that gateways on localhost share cookies, where a page is there, and what helps', async () => {
  await using other = await start({ ALLOWED_ORIGINS: 'http://localhost:5173' });
  const shared = expect.stringMatching(/^cookies ignore ports: .+ 127\.0\.0\.1 or .+ \.localhost$/);
  expect(other.lines).toMatchObject([{ level: 'info', msg: shared }, { level: 'info' }]);
  await using apart = await start({ ALLOWED_ORIGINS: 'http://127.0.0.1:5173,http://a.localhost:5173' });
  expect(apart.lines).toHaveLength(1);
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
  expect(printed.map((line) => line.split(' ', 2)[1])).toEqual(
    'TRUSTED_PROXIES IDP_URL IDP_CLIENT_SECRET IDP_CLIENT_KEY NODE_TLS_REJECT_UNAUTHORIZED deploy/settings.md'.split(
      ' ',
    ),
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
