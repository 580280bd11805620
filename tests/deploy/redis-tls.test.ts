import { expect, it } from 'bun:test';
import { eventually } from '../support/eventually.ts';
import { freePorts } from '../support/free-ports.ts';
import { startGatewayProcess } from '../support/gateway-process.ts';
import { PATIENT_WITH_REDIS, REDIS_SERVER, startRedis } from '../support/redis.ts';
import { describeWith } from '../support/requirements.ts';

const SECRET = 'password-of-redis';
/** A certificate and its key. */
const BOTH = new URL('../support/certificate.pem', import.meta.url).pathname;

describeWith([REDIS_SERVER], 'a Redis with a certificate', () => {
  it('is used by an instance that trusts it, and by no other', async () => {
    await using stack = new AsyncDisposableStack();
    const port = await freePorts(1);
    const files = ['--tls-cert-file', BOTH, '--tls-key-file', BOTH, '--tls-ca-cert-file', BOTH];
    const secured = ['--tls-port', String(port), '--tls-auth-clients', 'no', '--requirepass', SECRET];
    const redis = stack.use(await startRedis(...files, ...secured));
    const lines: string[] = [];
    const start = async (trusted: Record<string, string>) => {
      const settings = { UPSTREAM_URL: 'http://127.0.0.1:1', BUN_OPTIONS: PATIENT_WITH_REDIS, ...trusted };
      const REDIS_URL = `rediss://:${SECRET}@127.0.0.1:${port}`;
      return stack.use(await startGatewayProcess({ ...settings, REDIS_URL }, (line) => lines.push(line)));
    };
    const stranger = await start({});
    const trusting = await start({ NODE_EXTRA_CA_CERTS: BOTH });
    await eventually(() => stranger.said('Redis cannot be used') === 1, 'Redis not to be trusted');
    await redis.stop();
    await eventually(() => trusting.said('Redis cannot be used') === 1, 'Redis to be away');
    await redis.start();
    await eventually(() => trusting.said('Redis can be used again') === 1, 'Redis to be trusted');
    expect(stranger.said('Redis can be used again')).toBe(0);
    expect(lines.join('\n') + stranger.stderr() + trusting.stderr()).not.toContain(SECRET);
  });
});
