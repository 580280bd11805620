import { expect, it } from 'bun:test';
import { mkdir } from 'node:fs/promises';
import { successorIn } from '../../../src/gateway/refresh/record.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts';
import { REDIS_SERVER, RedisAdmin, startRedis } from '../../support/redis.ts';
import { describeWith, program } from '../../support/requirements.ts';
import { Rotation, SharedUpstream } from '../../support/rotating-upstream.ts';
import { checkSession, cookies, ME, REFRESH, refreshes } from '../../support/session-calls.ts';
import { request, startWorld, storedTokens } from '../../support/world.ts';

const SECRET = 'password-of-redis';
/** The refreshes that `startTwo` makes. */
const WARM_UP = 1;

async function startTwo() {
  await using stack = new AsyncDisposableStack();
  const redis = stack.use(await startRedis());
  const upstream = stack.use(new SharedUpstream());
  const rotation = new Rotation(upstream);
  const settings = { UPSTREAM_URL: upstream.upstreamUrl, REDIS_URL: redis.url };
  const [first, second] = [stack.use(startWorld(settings)), stack.use(startWorld(settings))];
  // The first command on a connection waits for it, perhaps longer than Redis is given.
  for (const each of [first, second]) await checkSession(each, 'svc_music_refresh=warm-1');
  const admin = stack.use(new RedisAdmin(redis.url));
  const started = stack.move();
  const dispose = () => started.disposeAsync();
  return { redis, upstream, rotation, settings, first, second, admin, [Symbol.asyncDispose]: dispose };
}

function processSession(gateway: { readonly url: string }, cookie = cookies(1)): Promise<Response> {
  return request(`${gateway.url}/api/auth/session`, { cookie });
}

// That they share a refresh: refresh-coordinator.test.ts and deployment/two-instances-example.test.ts.
describeWith([REDIS_SERVER], 'two instances with Redis', () => {
  it('recover when the one that refreshes is killed in the middle', async () => {
    await using two = await startTwo();
    const { second, upstream, rotation } = two;
    await using killed = await startGatewayProcess(two.settings);
    const never = Promise.withResolvers<Response>();
    upstream.on(REFRESH, () => never.promise);
    const lost = processSession(killed);
    await upstream.arrived(REFRESH, WARM_UP + 1);
    upstream.on(REFRESH, (received) => rotation.refresh(received));
    const waiting = checkSession(second, cookies(1));
    await upstream.arrived(ME, 2 * WARM_UP + 2);
    killed.kill('SIGKILL');
    await expect(lost).rejects.toThrow();
    const response = await waiting;
    expect(response.status).toBe(200);
    expect(storedTokens(response)['svc_music_refresh']).toBe('refresh-2');
    expect(refreshes({ upstream })).toBe(WARM_UP + 2);
  });

  it('keep nothing in Redis that is a token or that opens without one', async () => {
    await using two = await startTwo();
    const { first, admin } = two;
    await checkSession(first, cookies(1));
    await checkSession(first, 'svc_music_refresh=refresh-2');
    const keys = await eventually(async () => {
      const found = await admin.kept();
      return found.length >= 2 * (WARM_UP + 2) ? found : undefined;
    }, 'a pair and a mark of each refresh');
    const values = await Promise.all(keys.map(async (key) => (await admin.get(key)) ?? ''));
    // Beside each pair, the mark that its refresh token was issued, and when it was presented.
    const texts = values.map((value) => value.replace(/^\d+ /, ''));
    const marks = texts.filter((_, index) => keys[index]?.includes(':mark:'));
    expect(marks.toSorted()).toEqual(['issued:', 'issued:', 'presented:']);
    const sealed = texts.filter((text) => text.startsWith('renewed:')).map((text) => text.slice(8));
    expect(sealed).toHaveLength(WARM_UP + 2);
    const decoded = sealed.flatMap((jwe) =>
      jwe.split('.').map((part) => Buffer.from(part, 'base64url').toString('latin1')),
    );
    const dump = [...keys, ...values, ...decoded].join('\n');
    for (const token of ['access-', 'refresh-']) expect(dump).not.toContain(token);
    const opened = (token: string) =>
      Promise.all(sealed.map((detail) => successorIn({ kind: 'renewed', detail, writtenAt: 0 }, token, 0)));
    expect((await opened('refresh-1')).filter(Boolean)).toHaveLength(1);
    for (const token of ['access-1', '']) expect((await opened(token)).filter(Boolean)).toEqual([]);
  });
});

/** Every user comes twice at once, to one instance, with an expired pair. */
async function visit(gateway: { readonly url: string }, name: string): Promise<void> {
  const users = Array.from({ length: 40 }, (_, index) => `${name}${index % 20}`);
  await Promise.all(
    users.map(async (user) => {
      const response = await processSession(gateway, `svc_music_access=old; svc_music_refresh=${user}-1`);
      expect(response.status).toBe(200);
    }),
  );
}

/** Lines of the log may be written 100 ms later. */
async function expectSaid(gateway: GatewayProcess, text: string, times: number): Promise<void> {
  await eventually(() => gateway.said(text) >= times, `the log to say "${text}"`);
  expect(gateway.said(text)).toBe(times);
}

describeWith([REDIS_SERVER], 'an instance whose Redis fails', () => {
  it('serves every request while Redis is stopped, stalled and back again, and logs each change once', async () => {
    await using redis = await startRedis();
    await using upstream = new SharedUpstream();
    const rotation = new Rotation(upstream);
    const settings = { UPSTREAM_URL: upstream.upstreamUrl, REDIS_URL: redis.url };
    await using gateway = await startGatewayProcess(settings);
    const again = (times: number) =>
      eventually(() => gateway.said('Redis can be used again') >= times, `Redis to be back ${times} times`);
    await visit(gateway, 'up');
    await redis.stop();
    await visit(gateway, 'stopped');
    // What was refreshed while Redis was up, and while it was down, is still known.
    await visit(gateway, 'up');
    await redis.start();
    await again(1);
    await visit(gateway, 'stopped');
    using admin = new RedisAdmin(redis.url);
    // Nothing is sent to a Redis that comes back.
    expect(await admin.kept()).toEqual([]);
    redis.stall();
    await visit(gateway, 'stalled');
    redis.resume();
    await again(2);
    await visit(gateway, 'resumed');
    expect(rotation.hasSeenReuse).toBe(false);
    await expectSaid(gateway, 'Redis cannot be used', 2);
  });

  it('starts and works when Redis is not there at all', async () => {
    await using upstream = new SharedUpstream();
    const rotation = new Rotation(upstream);
    const settings = { UPSTREAM_URL: upstream.upstreamUrl, REDIS_URL: 'redis://127.0.0.1:1' };
    await using gateway = await startGatewayProcess(settings);
    await visit(gateway, 'alone');
    expect(refreshes({ upstream })).toBe(20);
    expect(rotation.hasSeenReuse).toBe(false);
    await expectSaid(gateway, 'Redis cannot be used', 1);
  });
});

describeWith([REDIS_SERVER, program('openssl')], 'an instance whose Redis has a certificate', () => {
  it('works alone, and with Redis from the moment when it has one that the instance trusts', async () => {
    await using stack = new AsyncDisposableStack();
    const port = await freePorts(1);
    const redis = stack.use(await startRedis());
    const admin = stack.use(new RedisAdmin(redis.url));
    const show = async (name: string) => {
      const [certificate, key] = [
        `${redis.folder}/${name}/certificate.pem`,
        `${redis.folder}/${name}/key.pem`,
      ];
      const files = ['tls-cert-file', certificate, 'tls-key-file', key, 'tls-ca-cert-file', certificate];
      await admin.send('CONFIG', ['SET', 'tls-auth-clients', 'no', ...files, 'tls-port', String(port)]);
    };
    for (const name of ['trusted', 'other']) {
      await mkdir(`${redis.folder}/${name}`);
      await makeCertificate(`${redis.folder}/${name}`);
    }
    await show('other');
    const upstream = stack.use(new SharedUpstream());
    const rotation = new Rotation(upstream);
    await admin.send('CONFIG', ['SET', 'requirepass', SECRET]);
    const REDIS_URL = `rediss://:${SECRET}@127.0.0.1:${port}`;
    const settings = { UPSTREAM_URL: upstream.upstreamUrl, REDIS_URL };
    const trusted = `${redis.folder}/trusted/certificate.pem`;
    const lines: string[] = [];
    const gateway = stack.use(
      await startGatewayProcess({ ...settings, NODE_EXTRA_CA_CERTS: trusted }, (line) => lines.push(line)),
    );
    await visit(gateway, 'alone');
    await expectSaid(gateway, 'Redis cannot be used', 1);
    await show('trusted');
    await eventually(() => gateway.said('Redis can be used again'), 'Redis to be trusted');
    await visit(gateway, 'together');
    expect(await admin.kept()).toHaveLength(40);
    expect(rotation.hasSeenReuse).toBe(false);
    expect(lines.join('\n') + gateway.stderr()).not.toContain(SECRET);
  });
});
