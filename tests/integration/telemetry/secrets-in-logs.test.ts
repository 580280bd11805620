import { describe, expect, it } from 'bun:test';
import { clientKeyPair } from '../../support/client-keys.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { startGatewayProcess } from '../../support/gateway-process.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { ORIGIN } from '../../support/world.ts';
import { CLIENT_ADDRESS, EVERY_FLOW, MARK, REPLAY, scriptEveryFlow } from './every-flow.ts';
import { startTraceReceiver } from './trace-receiver.ts';

const CLIENT_KEY = clientKeyPair('ES256', MARK);
const COOKIE_KEY = Buffer.alloc(32, MARK).toString('base64url');
const SECRETS = {
  production: { COOKIE_KEYS: COOKIE_KEY, IDP_CLIENT_KEY: CLIENT_KEY.privateJwk },
  development: { IDP_CLIENT_SECRET: `${MARK}-client` },
};
/** Without these in the metrics, the search would prove nothing. */
const EXPECTED =
  'clientRefused tokensTooLarge sessionEnded toldByUpstream generationTimeout renewed replayed rejected unreachable';

describe.each(['production', 'development'] as const)('everything that a gateway writes in %s', (mode) => {
  /** Returns its log, how to stop it, and what it has written on stderr. */
  async function start(settings: Record<string, string>) {
    const log: string[] = [];
    const gateway = await startGatewayProcess({ NODE_ENV: mode, ...settings }, (line) => log.push(line));
    const stop = async () => {
      gateway.kill('SIGTERM');
      expect(await gateway.exited).toBe(0);
      await gateway[Symbol.asyncDispose]();
    };
    return { ...gateway, log, stop };
  }

  it('is free of secrets in every flow', async () => {
    const upstream = new ScriptedUpstream();
    scriptEveryFlow(upstream);
    // The first export fails, so that the log says why.
    let exports = 0;
    await using receiver = startTraceReceiver(() => new Response(MARK, { status: exports++ ? 200 : 500 }));
    const metricsPort = await freePorts(1);
    // Two flows wait for these, and the process for the longest of all.
    const timeouts = ['SIGN_IN', 'READ', 'LOGOUT', 'STREAM'].map((name) => [`TIMEOUT_${name}_MS`, '1500']);
    await using gateway = await start({
      ...Object.fromEntries(timeouts),
      ...SECRETS[mode],
      LOG_LEVEL: 'trace',
      UPSTREAM_URL: upstream.upstreamUrl,
      IDP_URL: upstream.identityProviderUrl,
      METRICS_PORT: String(metricsPort),
      REDIS_URL: `redis://:${MARK}@127.0.0.1:1`,
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_HEADERS: `api-key=${MARK}`,
      COOKIE_KEYS_ACCEPT_PLAIN: 'true',
      FORWARD_CLIENT_ADDRESS: 'true',
      TRUSTED_PROXIES: '127.0.0.1',
    });
    const { log } = gateway;
    const flows = EVERY_FLOW.map((flow, index) => flow(gateway, `flow-${index}-`, upstream));
    const cookies = new Set((await Promise.all(flows)).flat());
    for (const cookie of await REPLAY(gateway, 'flow-replay-', upstream)) cookies.add(cookie);
    const linesOf = (id: unknown) => log.filter((line) => line.includes(`"flow-${id}-"`)).length;
    const ids = [...EVERY_FLOW.keys(), 'replay'];
    await eventually(() => ids.every((id) => linesOf(id) === 1), 'one log line of each flow');
    const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    await gateway.stop();
    await upstream.stop();
    const exported = receiver.received.map(({ bytes }) => bytes.toString('latin1'));
    const written = [...log, metrics, gateway.stderr(), ...exported].join('\n');

    const sent = credentialsSent(upstream);
    expect(sent.length).toBeGreaterThanOrEqual(5);
    expect(cookies.size).toBeGreaterThanOrEqual(2);
    expect(upstream.last('GET /v1/me').headers.get('x-forwarded-for')).toBe(CLIENT_ADDRESS);
    // A sealed token has no mark, so the cookies themselves are looked for too.
    for (const secret of [MARK, CLIENT_ADDRESS, COOKIE_KEY, ...CLIENT_KEY.secrets, ...sent, ...cookies]) {
      expect(written).not.toContain(secret);
    }
    for (const value of EXPECTED.split(' ')) expect(metrics).toContain(`="${value}"`);
    expect(written).toContain('"tokenProblem":"no access_token"');
    expect(written).toContain('Redis cannot be used');
    expect(receiver.spans.length).toBeGreaterThan(EVERY_FLOW.length);
  });

  it('is free of the address of a body that the upstream breaks off', async () => {
    let [size, breakOff] = [0, () => {}];
    await using upstream = await startRawUpstream((socket) => {
      breakOff = () => void socket.end();
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n${'x'.repeat(size)}`);
    });
    await using gateway = await start({ UPSTREAM_URL: `${upstream.url}/${MARK}` });
    const headers = { origin: ORIGIN, cookie: `svc_music_access=${MARK}` };
    for (const [index, bytes] of [1000, 300_000].entries()) {
      size = bytes;
      const response = await fetch(`${gateway.url}/api/upstream/v1/${MARK}?q=${MARK}`, { headers });
      const reading = async () => {
        let left = bytes;
        for await (const piece of response.body ?? []) {
          left -= piece.byteLength;
          if (left === 0) breakOff();
        }
      };
      await expect(reading()).rejects.toThrow();
      const broken = () => gateway.log.filter((line) => line.includes('"brokenBody":true')).length;
      await eventually(() => broken() === index + 1, 'the log line');
    }
    await gateway.stop();
    expect(gateway.log.join('\n')).not.toContain(MARK);
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
