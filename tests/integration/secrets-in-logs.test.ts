import { describe, expect, it } from 'bun:test';
import { clientKeyPair } from '../support/client-keys.ts';
import { freePorts } from '../support/free-ports.ts';
import { startGatewayProcess } from '../support/gateway-process.ts';
import { EVERY_FLOW, MARK, scriptEveryFlow } from '../support/leak-scenarios.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { ORIGIN } from '../support/world.ts';

const CLIENT_KEY = clientKeyPair('ES256', MARK);
const COOKIE_KEY = Buffer.alloc(32, MARK).toString('base64url');

describe.each(['production', 'development'])(
  'all that a gateway writes in %s, through every flow',
  (mode) => {
    it.each([
      ['plain cookies and a client secret', { IDP_CLIENT_SECRET: `${MARK}-client` }],
      ['sealed cookies and a client key', { COOKIE_KEYS: COOKIE_KEY, IDP_CLIENT_KEY: CLIENT_KEY.privateJwk }],
    ])('has no token, code, verifier, credential, cookie or prompt in it: %s', async (_, secrets) => {
      const upstream = new ScriptedUpstream();
      scriptEveryFlow(upstream);
      const metricsPort = await freePorts(1);
      const log: string[] = [];
      const settings = {
        NODE_ENV: mode,
        LOG_LEVEL: 'trace',
        UPSTREAM_URL: upstream.upstreamUrl,
        IDP_URL: upstream.identityProviderUrl,
        METRICS_PORT: String(metricsPort),
        REDIS_URL: `redis://:${MARK}@127.0.0.1:1`,
        ...secrets,
        COOKIE_KEYS_ACCEPT_PLAIN: 'true',
        TIMEOUT_SIGN_IN_MS: '300',
        TIMEOUT_STREAM_MS: '300',
      };
      const gateway = await startGatewayProcess(settings, (line) => log.push(line));
      const cookies = new Set<string>();
      for (const [index, { run }] of EVERY_FLOW.entries()) {
        for (const cookie of await run(gateway, `flow-${index}`)) cookies.add(cookie);
      }
      const hasEnded = (id: string) => log.some((line) => line.includes(`"${id}"`));
      while (!EVERY_FLOW.every((_, index) => hasEnded(`flow-${index}`))) await Bun.sleep(5);
      const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
      const all = `${log.join('\n')}\n${metrics}`;
      await gateway[Symbol.asyncDispose]();
      await upstream.stop();

      expect(`${all}\n${gateway.errors()}`).not.toContain(MARK);
      expect(all).not.toContain(COOKIE_KEY);
      const sent = credentialsSent(upstream);
      expect(sent.length).toBeGreaterThanOrEqual(5);
      expect(cookies.size).toBeGreaterThanOrEqual(2);
      // A sealed token has no mark, so the cookies themselves are looked for too.
      for (const secret of [...CLIENT_KEY.secrets, ...sent, ...cookies]) expect(all).not.toContain(secret);
      // What should be there is: the line of every flow, and what it was counted as.
      for (const [index] of EVERY_FLOW.entries()) {
        expect(log.filter((line) => line.includes(`"flow-${index}"`))).toHaveLength(1);
      }
      for (const reason of [
        'clientRefused',
        'tokensTooLarge',
        'sessionEnded',
        'toldByUpstream',
        'generationTimeout',
      ]) {
        expect(metrics).toContain(`reason="${reason}"`);
      }
      for (const outcome of ['renewed', 'replayed', 'rejected', 'unreachable']) {
        expect(metrics).toContain(`music_gateway_refreshes_total{outcome="${outcome}"}`);
      }
    });

    it('has no address of a body that the upstream breaks off, before or after the head', async () => {
      for (const size of [1000, 20_000, 300_000]) {
        await using upstream = await startRawUpstream((socket) => {
          socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n${'x'.repeat(size)}`);
        });
        const log: string[] = [];
        const settings = { NODE_ENV: mode, UPSTREAM_URL: `${upstream.url}/${MARK}` };
        const gateway = await startGatewayProcess(settings, (line) => log.push(line));
        const headers = { origin: ORIGIN, cookie: `svc_music_access=${MARK}` };
        const broken = fetch(`${gateway.url}/api/upstream/v1/${MARK}?q=${MARK}`, { headers });
        await expect(broken.then((response) => response.arrayBuffer())).rejects.toThrow();
        while (!log.some((line) => line.includes('"brokenBody":true'))) await Bun.sleep(5);
        await gateway[Symbol.asyncDispose]();
        expect(log.join('\n') + gateway.errors()).not.toContain(MARK);
        // Bun would print it there.
        expect(gateway.stderr()).toBe('');
      }
    });
  },
);

/** What the gateway authenticated itself with at the token endpoint. */
function credentialsSent({ received }: ScriptedUpstream): string[] {
  return received.flatMap(({ target, headers, body }) => {
    if (target !== '/oauth/token') return [];
    const assertion = new URLSearchParams(body).get('client_assertion');
    return headers.get('authorization')?.replace('Basic ', '') ?? assertion ?? [];
  });
}
