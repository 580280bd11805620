import { describe, expect, it } from 'bun:test';
import { clientKeyPair } from '../../support/client-keys.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { startGatewayProcess } from '../../support/gateway-process.ts';
import { CLIENT_ADDRESS, EVERY_FLOW, MARK, scriptEveryFlow } from '../../support/leak-scenarios.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { startTraceReceiver } from '../../support/trace-receiver.ts';
import { ORIGIN } from '../../support/world.ts';

const CLIENT_KEY = clientKeyPair('ES256', MARK);
const COOKIE_KEY = Buffer.alloc(32, MARK).toString('base64url');
const EXPECTED_REASONS = [
  'clientRefused',
  'tokensTooLarge',
  'sessionEnded',
  'toldByUpstream',
  'generationTimeout',
];

describe.each(['production', 'development'])('everything that a gateway writes in %s', (mode) => {
  it.each([
    ['plain cookies and a client secret', { IDP_CLIENT_SECRET: `${MARK}-client` }],
    ['sealed cookies and a client key', { COOKIE_KEYS: COOKIE_KEY, IDP_CLIENT_KEY: CLIENT_KEY.privateJwk }],
  ])('is free of secrets in every flow with %s', async (_, secrets) => {
    const upstream = new ScriptedUpstream();
    scriptEveryFlow(upstream);
    // The first export fails, so that the log says why.
    let exports = 0;
    await using receiver = startTraceReceiver(() => new Response(MARK, { status: exports++ ? 200 : 500 }));
    const metricsPort = await freePorts(1);
    const log: string[] = [];
    const settings = {
      NODE_ENV: mode,
      LOG_LEVEL: 'trace',
      UPSTREAM_URL: upstream.upstreamUrl,
      IDP_URL: upstream.identityProviderUrl,
      METRICS_PORT: String(metricsPort),
      REDIS_URL: `redis://:${MARK}@127.0.0.1:1`,
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_HEADERS: `api-key=${MARK}`,
      ...secrets,
      COOKIE_KEYS_ACCEPT_PLAIN: 'true',
      FORWARD_CLIENT_ADDRESS: 'true',
      TRUSTED_PROXIES: '127.0.0.1',
      TIMEOUT_SIGN_IN_MS: '300',
      TIMEOUT_STREAM_MS: '300',
    };
    await using gateway = await startGatewayProcess(settings, (line) => log.push(line));
    const cookies = new Set<string>();
    const linesOf = (index: number) => log.filter((line) => line.includes(`"flow-${index}"`));
    for (const [index, { name, run }] of EVERY_FLOW.entries()) {
      for (const cookie of await run(gateway, `flow-${index}`)) cookies.add(cookie);
      await eventually(() => linesOf(index).length === 1, `the log line of: ${name}`);
    }
    const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    gateway.kill('SIGTERM');
    expect(await gateway.exited).toBe(0);
    await gateway[Symbol.asyncDispose]();
    await upstream.stop();
    const exported = receiver.received.map(({ bytes }) => bytes.toString('latin1')).join('\n');
    const written = `${log.join('\n')}\n${metrics}\n${gateway.stderr()}\n${exported}`;

    const sent = credentialsSent(upstream);
    expect(sent.length).toBeGreaterThanOrEqual(5);
    expect(cookies.size).toBeGreaterThanOrEqual(2);
    // A sealed token has no mark, so the cookies themselves are looked for too.
    expect(upstream.last('GET /v1/me').headers.get('x-forwarded-for')).toBe(CLIENT_ADDRESS);
    for (const secret of [MARK, CLIENT_ADDRESS, COOKIE_KEY, ...CLIENT_KEY.secrets, ...sent, ...cookies]) {
      expect(written).not.toContain(secret);
    }
    // Without the facts that belong there, the search would prove nothing.
    for (const index of EVERY_FLOW.keys()) expect(linesOf(index)).toHaveLength(1);
    expect(log.join('\n')).toContain('traces cannot be exported');
    expect(receiver.spans.length).toBeGreaterThan(EVERY_FLOW.length);
    for (const reason of EXPECTED_REASONS) expect(metrics).toContain(`reason="${reason}"`);
    for (const outcome of ['renewed', 'replayed', 'rejected', 'unreachable']) {
      expect(metrics).toContain(`music_gateway_refreshes_total{outcome="${outcome}"}`);
    }
  });

  it('is free of the address of a body that the upstream breaks off', async () => {
    const sizes = [1000, 20_000, 300_000];
    const left = [...sizes];
    let breakOff = () => {};
    await using upstream = await startRawUpstream((socket) => {
      breakOff = () => void socket.end();
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n${'x'.repeat(left.shift() ?? 0)}`);
    });
    const log: string[] = [];
    const settings = { NODE_ENV: mode, UPSTREAM_URL: `${upstream.url}/${MARK}` };
    await using gateway = await startGatewayProcess(settings, (line) => log.push(line));
    const headers = { origin: ORIGIN, cookie: `svc_music_access=${MARK}` };
    for (const size of sizes) {
      const response = await fetch(`${gateway.url}/api/upstream/v1/${MARK}?q=${MARK}`, { headers });
      let bytes = 0;
      const reading = async () => {
        for await (const piece of response.body ?? []) {
          bytes += piece.byteLength;
          if (bytes === size) breakOff();
        }
      };
      await expect(reading()).rejects.toThrow();
    }
    const brokenBodies = () => log.filter((line) => line.includes('"brokenBody":true')).length;
    await eventually(() => brokenBodies() === sizes.length, 'the log lines of all broken bodies');
    gateway.kill('SIGTERM');
    expect(await gateway.exited).toBe(0);
    await gateway[Symbol.asyncDispose]();
    expect(log.join('\n')).not.toContain(MARK);
    // Bun would print the address there.
    expect(gateway.stderr()).toBe('');
  });
});

/** The credentials with which the gateway authenticated itself at the token endpoint. */
function credentialsSent({ received }: ScriptedUpstream): string[] {
  return received.flatMap(({ target, headers, body }) => {
    if (target !== '/oauth/token') return [];
    const assertion = new URLSearchParams(body).get('client_assertion');
    return headers.get('authorization')?.replace('Basic ', '') ?? assertion ?? [];
  });
}
