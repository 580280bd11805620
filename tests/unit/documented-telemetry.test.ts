import { describe, expect, it } from 'bun:test';
import { Admission } from '../../src/gateway/http/admission/admission.ts';
import { Metrics } from '../../src/gateway/telemetry/metrics.ts';
import { Telemetry } from '../../src/gateway/telemetry/telemetry.ts';
import { traceOf } from '../../src/gateway/trace/request-trace.ts';
import { namesInTables, readDocument, section } from '../support/documents.ts';
import { recordLog } from '../support/recorded-log.ts';
import { testSettings } from '../support/world.ts';

const OPERATING = await readDocument('deploy/README.md');
const LEVELS = ['debug', 'info', 'warn', 'error'];

/** Observes a request with every fact that the log and the metrics can have. */
function observeEverything() {
  const { logger, lines } = recordLog();
  const metrics = new Metrics();
  metrics.watch(new Admission(testSettings({ UPSTREAM_URL: 'http://u.test', IDP_URL: 'http://i.test' })));
  const routes = () => [{ method: 'GET', path: '/api/music/models' }];
  const telemetry = new Telemetry({ logger, metrics, routes, quietRoute: '/api/health' });
  telemetry.redisObserver().onUp();
  const request = new Request('http://localhost/api/music/models');
  const trace = traceOf(request);
  trace.calls.push({ call: 'models', outcome: 200, ms: 1 });
  Object.assign(trace, {
    refresh: 'renewed',
    refreshTokenReused: 'presented',
    oauthError: 'invalid_grant',
    reason: 'upstreamTimeout',
    cause: 'TimeoutError',
    bytes: 1,
    clientGone: 'streaming',
    brokenBody: true,
  } satisfies Partial<typeof trace>);
  telemetry.observe(request, () => new Response());
  return { line: lines[0] ?? {}, registry: metrics.registry };
}

/** Such as `music_gateway_refreshes_total{outcome}`, from the text that Prometheus reads. */
function metricsIn(scrape: string): Set<string> {
  const samples = scrape.matchAll(/^(music_gateway_\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+$/gm);
  return new Set(
    Array.from(samples, ([, name = '', labels = '']) => {
      const names = [...labels.matchAll(/(\w+)="/g)]
        .map(([, label]) => label)
        .filter((label) => label !== 'le');
      return names.length ? `${name}{${names.join(',')}}` : name;
    }),
  );
}

describe('the operating page', () => {
  it('explains each field of a line in the log, and no other', () => {
    const explained = namesInTables(section(OPERATING, '## The log')).filter(
      (name) => !LEVELS.includes(name),
    );
    expect(explained.toSorted()).toEqual(Object.keys(observeEverything().line).toSorted());
  });

  it('explains each metric with its labels, and no other', async () => {
    const explained = namesInTables(section(OPERATING, '## Metrics')).filter((name) =>
      name.startsWith('music_'),
    );
    const scraped = metricsIn(await observeEverything().registry.metrics());
    expect(explained.toSorted()).toEqual([...scraped].toSorted());
  });
});
