import { expect, it } from 'bun:test';
import { SETTINGS } from '../../support/bun-run-start.ts';
import { clientKeyPair } from '../../support/client-keys.ts';
import { ROOT } from '../../support/documents.ts';
import { runToEnd } from '../../support/run-to-end.ts';

const LIST = `
  const { getBuiltinModule } = process;
  const builtIn = [];
  process.getBuiltinModule = (name) => {
    builtIn.push(name);
    return getBuiltinModule(name);
  };
  await import('./src/index.ts');
  console.log(JSON.stringify([...Object.keys(require.cache), ...builtIn]));
  process.exit(0);
`;

const IDP_CLIENT_KEY = clientKeyPair('ES256').privateJwk;
const COLLECTOR = 'http://127.0.0.1:1';

/** What only some settings or requests need, by a part of its path. */
const OPTIONAL = [
  ...['/prom-client/', '/oauth4webapi/', '/jose/dist/webapi/index.js', '/jose/dist/webapi/key/'],
  '/gateway/openapi/',
  ...['/src/check/', '/@opentelemetry/sdk-trace/', 'node:net'],
];

it.each([
  ['no optional module', {}, []],
  ['the metrics with METRICS_PORT', { METRICS_PORT: '0' }, ['/prom-client/']],
  ['what imports keys with IDP_CLIENT_KEY', { IDP_CLIENT_KEY }, ['/jose/dist/webapi/key/']],
  ['what parses addresses with FORWARD_CLIENT_ADDRESS', { FORWARD_CLIENT_ADDRESS: 'true' }, ['node:net']],
  [
    'the traces with an address for them',
    { OTEL_EXPORTER_OTLP_ENDPOINT: COLLECTOR },
    ['/@opentelemetry/sdk-trace/'],
  ],
])('A start loads %s', async (_, settings, expected) => {
  const environment = { ...SETTINGS, LOG_LEVEL: 'silent', ...settings };
  const { output } = await runToEnd([process.execPath, '-e', LIST], { cwd: ROOT, environment });
  const files: string[] = JSON.parse(output);
  const isLoaded = (part: string) => files.some((file) => file.includes(part));
  expect(isLoaded('/gateway/gateway.ts')).toBe(true);
  expect(OPTIONAL.filter(isLoaded)).toEqual(expected);
});
