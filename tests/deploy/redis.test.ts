import { expect, it } from 'bun:test';
import { CERTIFICATE } from '../support/certificate.ts';
import { eventually } from '../support/eventually.ts';
import { freePorts } from '../support/free-ports.ts';
import { startGatewayProcess } from '../support/gateway-process.ts';
import { PATIENT_WITH_REDIS, REDIS_SERVER, type Redis, RedisAdmin, startRedis } from '../support/redis.ts';
import { describeWith, program } from '../support/requirements.ts';

const CONFIGURATION = new URL('../../deploy/redis/haproxy.cfg', import.meta.url).pathname;
const SECRET = 'password-of-redis';

/** Sends a command on a connection of its own. Returns the text of an error as well. */
async function ask(url: string, command: string, ...values: string[]): Promise<unknown> {
  using client = new RedisAdmin(url);
  return await client.send(command, values).catch(String);
}

/** Waits until HAProxy, which connects for each check, has judged a server several times. */
async function untilLookedAt({ url }: Redis): Promise<void> {
  using admin = new RedisAdmin(url);
  const looks = async () =>
    Number(/total_connections_received:(\d+)/.exec(await admin.send('INFO', ['stats']))?.[1]);
  const before = await looks();
  await eventually(async () => (await looks()) > before + 3, 'HAProxy to look at it several times');
}

describeWith([REDIS_SERVER, program('haproxy')], 'deploy/redis/haproxy.cfg', () => {
  it.each([
    ['that know nothing of each other, when the first one hangs', false],
    ['of which one is promoted, as a sentinel does it, when the first one ends', true],
  ])('gives everybody the other one of two Redis servers %s', async (_, isReplicated) => {
    await using stack = new AsyncDisposableStack();
    const a = stack.use(await startRedis());
    const b = stack.use(await startRedis());
    if (isReplicated) await ask(b.url, 'REPLICAOF', '127.0.0.1', String(a.port));
    const address = `127.0.0.1:${await freePorts(1)}`;
    const url = `redis://${address}`;
    const servers = { REDIS_A: `127.0.0.1:${a.port}`, REDIS_B: `127.0.0.1:${b.port}` };
    const env = { ...process.env, REDIS_LISTEN: address, ...servers };
    const haproxy = ['haproxy', '-db', '-f', CONFIGURATION];
    stack.use(Bun.spawn(haproxy, { env, stdio: ['ignore', 'ignore', 'ignore'] }));
    await eventually(async () => (await ask(url, 'SET', 'mark', 'first')) === 'OK', 'HAProxy to reach Redis');
    expect(await ask(a.url, 'GET', 'mark')).toBe('first');
    await untilLookedAt(b);
    const held = stack.use(new RedisAdmin(url));
    await held.send('PING', []);

    if (isReplicated) await a.stop();
    else a.stall();
    const promoted = isReplicated && untilLookedAt(b).then(() => ask(b.url, 'REPLICAOF', 'NO', 'ONE'));
    const responses = new Set<unknown>();
    const isBack = async () => {
      const response = await held.send('SET', ['mark', 'here']).catch(String);
      responses.add(response);
      return response === 'OK';
    };
    await eventually(isBack, 'a connection that was open to reach the other one');
    await promoted;
    expect([...responses].join()).not.toContain('READONLY');
    expect(await ask(b.url, 'GET', 'mark')).toBe('here');

    // The first one is back, and takes itself for the primary.
    if (isReplicated) await a.start();
    else a.resume();
    await untilLookedAt(a);
    for (let times = 0; times < 5; times++) expect(await ask(url, 'GET', 'mark')).toBe('here');
  });
});

describeWith([REDIS_SERVER], 'a Redis with a certificate', () => {
  it('is used by an instance that trusts it, and by no other', async () => {
    await using stack = new AsyncDisposableStack();
    const port = await freePorts(1);
    const files = ['cert', 'key', 'ca-cert'].flatMap((each) => [`--tls-${each}-file`, CERTIFICATE]);
    const secured = ['--tls-port', String(port), '--tls-auth-clients', 'no', '--requirepass', SECRET];
    const redis = stack.use(await startRedis(...files, ...secured));
    const lines: string[] = [];
    const start = async (trusted: Record<string, string>) => {
      const REDIS_URL = `rediss://:${SECRET}@127.0.0.1:${port}`;
      const settings = { REDIS_URL, BUN_OPTIONS: PATIENT_WITH_REDIS, ...trusted };
      return stack.use(await startGatewayProcess(settings, (line) => lines.push(line)));
    };
    const stranger = await start({});
    const trusting = await start({ NODE_EXTRA_CA_CERTS: CERTIFICATE });
    await eventually(() => stranger.said('Redis cannot be used') === 1, 'Redis not to be trusted');
    await redis.stop();
    await eventually(() => trusting.said('Redis cannot be used') === 1, 'Redis to be away');
    await redis.start();
    await eventually(() => trusting.said('Redis can be used again') === 1, 'Redis to be trusted');
    expect(stranger.said('Redis can be used again')).toBe(0);
    expect(lines.join('\n') + stranger.stderr() + trusting.stderr()).not.toContain(SECRET);
  });
});
