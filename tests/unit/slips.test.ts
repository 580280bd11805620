import { expect, it } from 'bun:test';
import { valueFindings } from '../../src/check/slips.ts';
import { parseSettings } from '../../src/gateway/settings/settings.ts';
import { REQUIRED } from '../support/world.ts';

const SETTINGS = {
  ...REQUIRED,
  UPSTREAM_URL: 'https://api.test/v1x',
  IDP_REDIRECT_URI: 'https://studio.test/callback',
  ALLOWED_ORIGINS: 'https://studio.test',
  NODE_ENV: 'production',
};

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
