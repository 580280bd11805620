import { expect, it, setSystemTime } from 'bun:test';
import net from 'node:net';
import { RedisClient } from 'bun';
import type { RefreshCoordinator } from '../../src/gateway/refresh/coordinator.ts';
import { RedisConnection } from '../../src/gateway/refresh/redis-connection.ts';
import { RedisReplayStore } from '../../src/gateway/refresh/redis-store.ts';
import { refreshTokenHash } from '../../src/gateway/refresh/sealed-pair.ts';
import { RequestTrace } from '../../src/gateway/trace/request-trace.ts';
import { startGatewayProcess } from '../support/gateway-process.ts';
import { REDIS_SERVER, type Redis, startRedis } from '../support/redis.ts';
import { refreshCoordinatorOver } from '../support/refresh-coordinator.ts';
import { describeWith } from '../support/requirements.ts';
import { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { TextStore } from '../support/text-store.ts';
import { envelopeMessage, ORIGIN, testSettings } from '../support/world.ts';

const MOST_UNKNOWN = 10_000;
const REFRESH = 'POST /v1/auth/refresh';
const LOGOUT = 'POST /v1/auth/logout';
const newTrace = () => new RequestTrace(new Request('http://gateway.test'));

class Admin extends RedisClient implements Disposable {
  async lifetimes(): Promise<number[]> {
    const keys = await this.keys('*');
    return Promise.all(keys.map((key) => this.pttl(key)));
  }

  [Symbol.dispose]() {
    this.close();
  }
}

/** An instance of the gateway without its sockets. */
function instance(upstream: ScriptedUpstream, redis: Redis): RefreshCoordinator {
  const settings = testSettings({
    UPSTREAM_URL: upstream.upstreamUrl,
    IDP_URL: upstream.identityProviderUrl,
  });
  return refreshCoordinatorOver(
    settings,
    new RedisReplayStore(new RedisConnection(redis.url, { onDown: () => {}, onUp: () => {} })),
  );
}

async function flood(shared: RefreshCoordinator, count: number): Promise<void> {
  for (let done = 0; done < count; done += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, index) => shared.end(`made-up-${done + index}`)));
  }
}

describeWith([REDIS_SERVER], 'made-up sign-outs', () => {
  it('take bounded room in Redis, and bring no session back that was signed out', async () => {
    await using redis = await startRedis();
    const upstream = new ScriptedUpstream();
    upstream.on('GET /v1/me', () => new Response('', { status: 401 }));
    upstream.on(REFRESH, () => Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' }));
    const settings = { UPSTREAM_URL: upstream.upstreamUrl, REDIS_URL: redis.url };
    await using first = await startGatewayProcess(settings);
    await using second = await startGatewayProcess(settings);
    const call = (url: string, cookie: string, method = 'GET') =>
      fetch(url, { method, headers: { origin: ORIGIN, cookie: `svc_music_refresh=${cookie}` } });
    await call(`${first.url}/api/auth/session`, 'refresh-1');
    await call(`${first.url}/api/auth/logout`, 'refresh-2', 'POST');

    let sent = 0;
    const connection = async () => {
      while (sent < 20_000) {
        const response = await call(`${first.url}/api/auth/logout`, `made-up-${sent++}`, 'POST');
        expect(response.status).toBe(200);
        await response.arrayBuffer();
      }
    };
    await Promise.all(Array.from({ length: 8 }, connection));

    using admin = new Admin(redis.url);
    // Three of the genuine session: the pair, the mark of its refresh token, the sign-out.
    expect(Number(await admin.send('DBSIZE', []))).toBeLessThanOrEqual(MOST_UNKNOWN + 3);
    const lifetimes = await admin.lifetimes();
    expect(lifetimes.filter((lifetimeMs) => lifetimeMs > 30_000)).toHaveLength(3);
    const isOver = async (url: string) => {
      await envelopeMessage(await call(`${url}/api/auth/session`, 'refresh-1'), 401);
      await envelopeMessage(await call(`${url}/api/auth/session`, 'refresh-2'), 401);
    };
    await isOver(second.url);
    await redis.stop();
    await isOver(first.url);
    expect(upstream.calls.filter((name) => name === REFRESH)).toHaveLength(1);
    await upstream.stop();
  });

  it('leave room for the sign-out of what has worked, or is being refreshed elsewhere', async () => {
    await using redis = await startRedis();
    const upstream = new ScriptedUpstream();
    upstream.on(LOGOUT, () => new Response(null, { status: 204 }));
    upstream.on(REFRESH, () => Response.json({ access_token: 'a2', refresh_token: 'worked-2' }));
    const [here, elsewhere] = [instance(upstream, redis), instance(upstream, redis)];
    await elsewhere.refresh('worked-1', newTrace(), Date.now());
    const response = Promise.withResolvers<Response>();
    upstream.on(REFRESH, () => response.promise);
    const refreshing = elsewhere.refresh('claimed-1', newTrace(), Date.now());
    await upstream.arrived(REFRESH, 2);

    await flood(here, MOST_UNKNOWN + 2000);
    await here.end('worked-2');
    await here.end('claimed-1');
    using admin = new Admin(redis.url);
    const key = (token: string) => `music-gateway:refresh:${refreshTokenHash(token)}`;
    expect(await admin.get(key('worked-2'))).toStartWith('ended:');
    expect(await admin.pttl(key('worked-2'))).toBeGreaterThan(30_000);
    expect((await elsewhere.refresh('worked-1', newTrace(), Date.now())).kind).toBe('ended');
    // In the place of the claim and no longer than it. The instance that refreshes has seen it by then.
    expect(await admin.get(key('claimed-1'))).toStartWith('ended:');
    expect(await admin.pttl(key('claimed-1'))).toBeLessThanOrEqual(3000);
    while ((await admin.get(key('claimed-1'))) !== null) await Bun.sleep(50);
    // Its memory has forgotten the record too.
    setSystemTime(Date.now() + 10_000);
    response.resolve(Response.json({ access_token: 'a2', refresh_token: 'claimed-2' }));
    expect((await refreshing).kind).toBe('ended');
    expect(upstream.last(LOGOUT).body).toBe('{"refresh_token":"claimed-2"}');
    setSystemTime();
    await upstream.stop();
  });

  it('are kept from Redis when it is emptied and the token comes again, beyond the time of a claim', async () => {
    await using redis = await startRedis();
    const upstream = new ScriptedUpstream();
    const here = instance(upstream, redis);
    await here.end('made-up');
    using admin = new Admin(redis.url);
    await admin.send('FLUSHALL', []);
    expect((await here.refresh('made-up', newTrace(), Date.now())).kind).toBe('ended');
    const [lifetimeMs] = await admin.lifetimes();
    expect(lifetimeMs).toBeLessThanOrEqual(3000);
    await upstream.stop();
  });
});

/** Greets, ends the first connection, and on the next replies only when 500 commands wait or the last have come. */
async function startCountingRedis(commands: number) {
  let [received, replied, replies] = [0, 0, 0];
  let text = '';
  let connections = 0;
  const server = net.createServer((socket) => {
    const number = ++connections;
    socket.on('error', () => {});
    socket.on('data', (data) => {
      if (data.includes('HELLO')) socket.write('%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n');
      if (number === 1) return socket.destroySoon();
      text += data.toString();
      received = text.split('$4\r\nEVAL\r\n').length - 1;
      const waiting = received - replied;
      if (waiting < 500 && received < commands) return;
      socket.write('_\r\n'.repeat(waiting));
      replied = received;
      replies++;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return { port, text: () => text, replies: () => replies, [Symbol.dispose]: () => void server.close() };
}

it('Redis hears what it has missed in batches of 500, what is known to have worked first', async () => {
  using redis = await startCountingRedis(1200);
  const isDown = Promise.withResolvers<void>();
  const isUp = Promise.withResolvers<void>();
  const connection = new RedisConnection(`redis://127.0.0.1:${redis.port}`, {
    onDown: () => isDown.resolve(),
    // After the first connection too, which was there for a moment.
    onUp: () => isDown.promise.then(() => redis.replies() && isUp.resolve()),
  });
  const store = new TextStore(new RedisReplayStore(connection));
  await isDown.promise;
  const lifetimes = { workedMs: 283_000, claimedMs: 23_000, unknownMs: 30_000 };
  for (let index = 0; index < 200; index++) await store.end(`made-up-${index}`, 'ended:1', lifetimes);
  for (let index = 0; index < 1000; index++) await store.add(`worked-${index}`, 'renewed:x', 280_000);
  await isUp.promise;
  // Two full ones, the rest, and the write that shows that Redis takes writes.
  expect(redis.replies()).toBe(4);
  expect(redis.text().indexOf('made-up-0')).toBeGreaterThan(redis.text().indexOf('worked-999'));
});
