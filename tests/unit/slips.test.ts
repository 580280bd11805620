import { expect, it } from 'bun:test';
import { nameFindings, valueFindings } from '../../src/check/slips.ts';
import { parseSettings, settingNames } from '../../src/gateway/settings/settings.ts';
import { REQUIRED } from '../support/world.ts';

const SETTINGS = {
  ...REQUIRED,
  UPSTREAM_URL: 'https://api.test/v1x',
  IDP_REDIRECT_URI: 'https://studio.test/callback',
  ALLOWED_ORIGINS: 'https://studio.test',
  NODE_ENV: 'production',
};

it.each([
  ['COOKIE_KEY_FILE', 'COOKIE_KEYS_FILE'],
  ['REFRESH_REPLAY_SECS', 'REFRESH_REPLAY_SECONDS'],
  ['TRUSTED_PROXY', 'TRUSTED_PROXIES'],
  ['LOGLEVEL', 'LOG_LEVEL'],
  ['TIMEOUT_STREAM', 'TIMEOUT_STREAM_MS'],
  ['upstream_url', 'UPSTREAM_URL'],
])('the check of the names takes %s for %s, without its value', (name, meant) => {
  const text = `${name} is not a setting: is ${meant} meant?`;
  expect(nameFindings({ [name]: 'hush-hush' })).toEqual([{ level: 'warning', text }]);
  expect(nameFindings({ [name]: ' ' })).toEqual([]);
});

it('the check of the names says nothing of settings, nor of what a shell, Kubernetes or OpenTelemetry sets', () => {
  const strangers =
    'HOME HOSTNAME LOGNAME PATH PS1 PWD SHELL TERM TZ USER _ NODE_PATH NODE_OPTIONS NODE_EXTRA_CA_CERTS NO_PROXY ' +
    'REDIS_PORT REDIS_SERVICE_HOST REDIS_PORT_6379_TCP IDP_PORT MUSIC_GATEWAY_PORT CREDENTIALS_DIRECTORY ' +
    'OTEL_TRACES_SAMPLER OTEL_EXPORTER_OTLP_HEADERS OTEL_EXPORTER_OTLP_TIMEOUT OTEL_EXPORTER_OTLP_PROTOCOL ' +
    'OTEL_SERVICE_NAME OTEL_EXPORTER_OTLP_TRACES_ENDPOINT BUN_CONFIG_MAX_HTTP_REQUESTS NODE_TLS_REJECT_UNAUTHORIZED';
  const names = [...settingNames(), ...strangers.split(' ')];
  expect(nameFindings(Object.fromEntries(names.map((name) => [name, 'set'])))).toEqual([]);
});

const TWICE = 'error: UPSTREAM_URL: https://api.test/v1 ends with /v1, which every call adds: leave it out';
const STRANGE =
  'warning: IDP_REDIRECT_URI: its origin http://studio.test is not in ALLOWED_ORIGINS: a page there cannot sign in';
const PLAIN =
  'has no TLS: anyone on the way can change that page, and browsers may withhold the Secure cookies from it';
const PROXY = 'without TRUSTED_PROXIES: behind a proxy, all clients have its address';
const LOCAL = 'http://localhost:4180,http://a.localhost,http://127.0.0.1:1,http://[::1]:1';

it.each<[environment: Record<string, string>, ...lines: string[]]>([
  [{ UPSTREAM_URL: 'https://api.test/v1/' }, TWICE],
  [{ UPSTREAM_URL: 'https://api.test/v1/tenant' }],
  [{ IDP_REDIRECT_URI: 'http://studio.test/' }, STRANGE],
  [{ IDP_REDIRECT_URI: 'HTTPS://Studio.Test:443/callback' }],
  [{ IDP_REDIRECT_URI: 'studio.app:/callback' }],
  [
    { ALLOWED_ORIGINS: 'https://studio.test,http://a.test:8080,http://localhost.test' },
    `warning: ALLOWED_ORIGINS: http://a.test:8080 ${PLAIN}`,
    `warning: ALLOWED_ORIGINS: http://localhost.test ${PLAIN}`,
  ],
  [{ ALLOWED_ORIGINS: 'https://studio.test,http://a.test', NODE_ENV: '' }],
  [{ ALLOWED_ORIGINS: `https://studio.test,${LOCAL}` }],
  [{ FORWARD_CLIENT_ADDRESS: 'true' }, `warning: FORWARD_CLIENT_ADDRESS ${PROXY}`],
  [{ FORWARD_CLIENT_ADDRESS: 'true', TRUSTED_PROXIES: '127.0.0.1' }],
])('the check of the values of %j finds %s', (changes, ...lines) => {
  const environment = { ...SETTINGS, ...changes };
  const outcome = parseSettings(environment);
  if (!outcome.ok) throw new Error(outcome.problems.join('\n'));
  const findings = valueFindings(outcome.settings, environment);
  expect(findings.map(({ level, text }) => `${level}: ${text}`)).toEqual(lines);
});
