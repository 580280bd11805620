import { describe, expect, it } from 'bun:test';
import { Admission } from '../../src/gateway/http/admission/admission.ts';
import { Metrics } from '../../src/gateway/telemetry/metrics.ts';
import { parseSamples } from '../support/metrics.ts';
import { startWorld, testSettings } from '../support/world.ts';

describe('Metrics.serve()', () => {
  it('answers /metrics on its own port, and nothing else there', async () => {
    const metrics = new Metrics();
    const addresses = { UPSTREAM_URL: 'http://u.test', IDP_URL: 'http://i.test' };
    metrics.watch(new Admission(testSettings({ ...addresses, MAX_IN_FLIGHT_REQUESTS: '7' })));
    const server = metrics.serve({ port: 0, hostname: '127.0.0.1' });
    const response = await fetch(`${server.url}metrics`);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toStartWith('text/plain; version=0.0.4');
    const text = await response.text();
    expect(parseSamples(text).get('places_limit{pool="stream"}')).toBe(7);
    for (const name of [
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'nodejs_eventloop_lag_p99_seconds',
    ]) {
      expect(text).toMatch(new RegExp(`^${name} [0-9.e-]+$`, 'm'));
    }
    for (const path of ['', 'api/health', 'metrics/', 'metrics/x']) {
      expect((await fetch(server.url + path)).status).toBe(404);
    }
    expect((await fetch(`${server.url}metrics`, { method: 'POST' })).status).toBe(404);
    await server.stop(true);
  });

  it('is no route of the gateway', async () => {
    await using world = startWorld({}, new Metrics());
    expect((await world.request('/metrics')).status).toBe(404);
    expect((await world.request('/api/metrics')).status).toBe(404);
  });
});
