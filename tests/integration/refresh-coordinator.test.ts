import { describe, expect, it, setSystemTime } from 'bun:test';
import { RedisClient } from 'bun';
import type { RefreshCoordinator } from '../../src/gateway/refresh/coordinator.ts';
import { MemoryReplayStore } from '../../src/gateway/refresh/memory-store.ts';
import { RedisConnection } from '../../src/gateway/refresh/redis-connection.ts';
import { RedisReplayStore } from '../../src/gateway/refresh/redis-store.ts';
import { refreshTokenHash } from '../../src/gateway/refresh/sealed-pair.ts';
import { RequestTrace } from '../../src/gateway/trace/request-trace.ts';
import { REDIS_SERVER, startRedis } from '../support/redis.ts';
import { refreshCoordinatorOver } from '../support/refresh-coordinator.ts';
import { describeWith } from '../support/requirements.ts';
import { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { TextStore } from '../support/text-store.ts';
import { envelopeMessage, SIGNED_IN, startWorld, testSettings } from '../support/world.ts';

class LingeringStore extends MemoryReplayStore {
  override readonly lingerMs = 500;
  replaced = 0;
  added = 0;
  override add(...parameters: Parameters<MemoryReplayStore['add']>) {
    this.added++;
    return super.add(...parameters);
  }
  override replace(...parameters: Parameters<MemoryReplayStore['replace']>) {
    this.replaced++;
    return super.replace(...parameters);
  }
}

const LIFETIMES = { workedMs: 283_000, claimedMs: 23_000, unknownMs: 30_000 };

const newTrace = () => new RequestTrace(new Request('http://gateway.test'));

describe('two that share a store', () => {
  const start = (environment: Record<string, string> = {}) => {
    const upstream = new ScriptedUpstream();
    const answer = Promise.withResolvers<Response>();
    upstream.on('POST /v1/auth/refresh', () => answer.promise);
    const settings = testSettings({
      UPSTREAM_URL: upstream.upstreamUrl,
      IDP_URL: upstream.identityProviderUrl,
      TIMEOUT_SIGN_IN_MS: '4500',
      ...environment,
    });
    const store = new LingeringStore();
    return {
      upstream,
      answer,
      store,
      first: refreshCoordinatorOver(settings, store),
      second: refreshCoordinatorOver(settings, store),
    };
  };

  it('make one refresh however long it takes, and prolong nothing afterwards', async () => {
    const { upstream, answer, store, first, second } = start();
    const traces = [newTrace(), newTrace()] as const;
    const outcomes = [first.refresh('t', traces[0], Date.now()), second.refresh('t', traces[1], Date.now())];
    // Longer than a claim lives that is not prolonged.
    while (store.replaced < 4) await Bun.sleep(20);
    answer.resolve(Response.json({ access_token: 'a', refresh_token: 'r' }));
    for (const { kind } of await Promise.all(outcomes)) expect(kind).toBe('renewed');
    expect(upstream.calls).toHaveLength(1);
    expect(traces.map(({ refresh }) => refresh)).toEqual(['renewed', 'shared']);
    const { replaced } = store;
    // That something does not happen can only be waited for: claims are prolonged every second.
    await Bun.sleep(1200);
    expect(store.replaced).toBe(replaced);
    await upstream.stop();
  }, 10_000);

  it('make one refresh when one of them takes over a claim that nobody holds', async () => {
    const { upstream, answer, store, first, second } = start({ TIMEOUT_SIGN_IN_MS: '1000' });
    await store.add(refreshTokenHash('t'), { kind: 'claimed', by: 'forged' }, 60_000);
    const traces = [newTrace(), newTrace()] as const;
    const outcomes = [first.refresh('t', traces[0], Date.now()), second.refresh('t', traces[1], Date.now())];
    await upstream.arrived('POST /v1/auth/refresh');
    // Time in which the other looks several times.
    const { added } = store;
    while (store.added < added + 4 && upstream.calls.length === 1) await Bun.sleep(20);
    expect(upstream.calls).toHaveLength(1);
    answer.resolve(Response.json({ access_token: 'a', refresh_token: 'r' }));
    for (const { kind } of await Promise.all(outcomes)) expect(kind).toBe('renewed');
    expect(upstream.last('POST /v1/auth/refresh').body).toBe('{"refresh_token":"t"}');
    expect(upstream.calls).toHaveLength(1);
    expect(traces.map(({ refresh }) => refresh).toSorted()).toEqual(['renewed', 'shared']);
    await upstream.stop();
  });

  it('both hear of a refusal, with one call', async () => {
    const { upstream, answer, first, second } = start();
    const outcomes = [
      first.refresh('t', newTrace(), Date.now()),
      second.refresh('t', newTrace(), Date.now()),
    ];
    await upstream.arrived('POST /v1/auth/refresh');
    answer.resolve(new Response('', { status: 401 }));
    for (const { kind } of await Promise.all(outcomes)) expect(kind).toBe('rejected');
    expect(upstream.calls).toHaveLength(1);
    await upstream.stop();
  });

  it('both hear that there was no answer, and neither takes it for a refusal', async () => {
    const { upstream, answer, first, second } = start();
    const outcomes = [
      first.refresh('t', newTrace(), Date.now()),
      second.refresh('t', newTrace(), Date.now()),
    ];
    for (const { kind } of await Promise.all(outcomes)) expect(kind).toBe('unreachable');
    expect(upstream.calls).toHaveLength(1);
    answer.resolve(new Response());
    await upstream.stop();
  }, 10_000);

  it('take a record that does not open for no verdict', async () => {
    const { upstream, store, first } = start();
    await store.add(refreshTokenHash('t'), { kind: 'renewed', sealedPair: 'nonsense' }, 1000);
    expect((await first.refresh('t', newTrace(), Date.now())).kind).toBe('unreachable');
    await upstream.stop();
  });
});

describe('sign-out', () => {
  it('is remembered for as long as a refresh may take, without a replay window too', async () => {
    await using world = startWorld({ REFRESH_REPLAY_SECONDS: '0' });
    world.upstream.on('GET /v1/me', () => new Response('', { status: 401 }));
    world.upstream.on('POST /v1/auth/logout', () => new Response(null, { status: 204 }));
    const refresh = Promise.withResolvers<Response>();
    world.upstream.on('POST /v1/auth/refresh', () => refresh.promise);
    const refreshing = world.request('/api/auth/session', { cookie: SIGNED_IN });
    await world.upstream.arrived('POST /v1/auth/refresh');
    await world.request('/api/auth/logout', { method: 'POST', cookie: SIGNED_IN });
    setSystemTime(Date.now() + 15_000);
    refresh.resolve(Response.json({ access_token: 'late-access', refresh_token: 'late-refresh' }));
    await envelopeMessage(await refreshing, 401);
    setSystemTime();
  });

  it('ends the replay although only the refresh cookie is left', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/me', () => Response.json({}));
    world.upstream.on('POST /v1/auth/refresh', () =>
      Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' }),
    );
    world.upstream.on('POST /v1/auth/logout', () => new Response(null, { status: 204 }));
    const cookie = 'svc_music_refresh=refresh-1';
    await world.request('/api/auth/session', { cookie });
    await world.request('/api/auth/logout', { method: 'POST', cookie });
    await envelopeMessage(await world.request('/api/auth/session', { cookie }), 401);
  });
});

describe('a flood of made-up sign-outs', () => {
  /** More than the memory store has ever kept. */
  const flood = async (shared: RefreshCoordinator) => {
    for (let index = 0; index < 60_000; index++) await shared.end(`made-up-${index}`);
  };
  const start = () => {
    const upstream = new ScriptedUpstream();
    const settings = testSettings({
      UPSTREAM_URL: upstream.upstreamUrl,
      IDP_URL: upstream.identityProviderUrl,
    });
    return { upstream, shared: refreshCoordinatorOver(settings, new MemoryReplayStore()) };
  };

  it.each(['t1', 't2'])(
    'does not bring back a session that was renewed and signed out with %s',
    async (token) => {
      const { upstream, shared } = start();
      upstream.on('POST /v1/auth/refresh', () => Response.json({ access_token: 'a2', refresh_token: 't2' }));
      await shared.refresh('t1', newTrace(), Date.now());
      await shared.end(token);
      await flood(shared);
      for (const late of ['t1', 't2'])
        expect((await shared.refresh(late, newTrace(), Date.now())).kind).toBe('ended');
      expect(upstream.calls).toEqual(['POST /v1/auth/refresh']);
      await upstream.stop();
    },
  );

  it('does not let a refresh bring back a session that was signed out meanwhile', async () => {
    const { upstream, shared } = start();
    const response = Promise.withResolvers<Response>();
    upstream.on('POST /v1/auth/refresh', () => response.promise);
    upstream.on('POST /v1/auth/logout', () => new Response(null, { status: 204 }));
    const refreshing = shared.refresh('t1', newTrace(), Date.now());
    await upstream.arrived('POST /v1/auth/refresh');
    await shared.end('t1');
    await flood(shared);
    response.resolve(Response.json({ access_token: 'a2', refresh_token: 't2' }));
    expect((await refreshing).kind).toBe('ended');
    expect(upstream.last('POST /v1/auth/logout').body).toBe('{"refresh_token":"t2"}');
    await flood(shared);
    expect((await shared.refresh('t1', newTrace(), Date.now())).kind).toBe('ended');
    expect(upstream.calls).toHaveLength(2);
    await upstream.stop();
  });
});

describe('a sign-out with a refresh token that stays the same', () => {
  it('is known to a response that comes minutes later', async () => {
    await using world = startWorld();
    const release = Promise.withResolvers<void>();
    world.upstream.on('POST /v1/auth/refresh', () =>
      Response.json({ access_token: 'access-2', refresh_token: 'refresh-1' }),
    );
    world.upstream.on('POST /v1/auth/logout', () => new Response(null, { status: 204 }));
    world.upstream.on('GET /v1/models', async ({ headers }) => {
      if (headers.get('authorization') === 'Bearer access-1') return new Response('', { status: 401 });
      await release.promise;
      return Response.json({});
    });
    const long = world.request('/api/music/models', { cookie: SIGNED_IN });
    await world.upstream.arrived('GET /v1/models', 2);
    await world.request('/api/auth/logout', { method: 'POST', cookie: SIGNED_IN });
    setSystemTime(Date.now() + 200_000);
    release.resolve();
    expect((await long).headers.getSetCookie()).toEqual([]);
    setSystemTime();
  });
});

describeWith([REDIS_SERVER], 'RedisReplayStore', () => {
  async function world() {
    const redis = await startRedis();
    let recoveries = 0;
    let isDown = false;
    const observer = {
      onDown: () => {
        isDown = true;
      },
      onUp: () => {
        if (isDown) recoveries++;
      },
    };
    const store = () => new TextStore(new RedisReplayStore(new RedisConnection(redis.url, observer)));
    const [a, b] = [store(), store()];
    const admin = async (command: string, ...values: string[]) => {
      const client = new RedisClient(redis.url);
      const answer = await client.send(command, values);
      client.close();
      return answer;
    };
    const raw = (key: string) => admin('GET', `music-gateway:refresh:${key}`);
    const back = async () => {
      while (recoveries < 2) await Bun.sleep(10);
    };
    return { redis, a, b, admin, raw, back };
  }

  it('tells a sign-out after an outage, whoever comes back first', async () => {
    for (const endedAtA of [true, false]) {
      const { redis, a, b, admin, raw, back } = await world();
      await using _ = redis;
      await redis.stop();
      await Promise.all([
        (endedAtA ? a : b).end('k', 'ended:1', LIFETIMES),
        (endedAtA ? b : a).add('k', 'renewed:x', 280_000),
      ]);
      await redis.start();
      await back();
      expect(await raw('k')).toStartWith('ended:');
      // For as long as the instance that has renewed the token would replay its pair.
      expect(await admin('PTTL', 'music-gateway:refresh:k')).toBeGreaterThan(200_000);
    }
  });

  it('tells an outcome over a claim, and no outcome over another', async () => {
    const { redis, a, b, admin, raw, back } = await world();
    await using _ = redis;
    await redis.stop();
    await Promise.all([
      a.add('claimed', 'renewed:a', 60_000),
      a.add('known', 'renewed:a', 60_000),
      b.get('x'),
    ]);
    await redis.start();
    await admin('SET', 'music-gateway:refresh:claimed', 'claimed:c');
    await admin('SET', 'music-gateway:refresh:known', 'renewed:c');
    await back();
    expect(await raw('claimed')).toBe('renewed:a');
    expect(await raw('known')).toBe('renewed:c');
  });

  it('goes by its own memory for what Redis has lost, and by Redis for what it has not', async () => {
    const { redis, a, b, admin, raw } = await world();
    await using _ = redis;
    for (const key of ['add', 'end', 'get']) await a.add(key, 'renewed:a', 60_000);
    expect(await b.add('add', 'renewed:b', 60_000)).toBe('renewed:a');
    await admin('FLUSHALL');
    expect(await a.get('get')).toBe('renewed:a');
    expect(await a.end('end', 'ended:1', LIFETIMES)).toBe('renewed:a');
    expect(await a.add('add', 'claimed:a', 3000)).toBe('renewed:a');
    expect(await raw('add')).toBe('renewed:a');
  });

  it('forgets a sign-out here too, although its time in Redis is another', async () => {
    const { redis, a, admin, raw } = await world();
    await using _ = redis;
    await a.end('k', 'ended:1', LIFETIMES);
    await admin('SET', 'music-gateway:refresh:k', 'ended:2');
    expect(await a.replace('k', 'ended:2', 'unreachable', 1)).toBe(true);
    while (await raw('k')) await Bun.sleep(1);
    expect(await a.get('k')).toBeUndefined();
  });

  it('waits no longer than promised', async () => {
    const { redis, a } = await world();
    await using _ = redis;
    await a.get('warm');
    redis.stall();
    const begun = performance.now();
    await a.add('k', 'claimed:a', 3000);
    await a.replace('k', 'claimed:a', 'renewed:a', 60_000);
    // 80 ms on a machine that does nothing else; far from what Redis takes here, which is for ever.
    expect(performance.now() - begun).toBeLessThan(1500);
    redis.resume();
  });

  it('does not take its own stall for one of Redis', async () => {
    const { redis, a } = await world();
    await using _ = redis;
    await a.get('warm');
    for (const stall of [(f: () => void) => f(), setImmediate]) {
      const asked = a.add(crypto.randomUUID(), 'claimed:a', 3000);
      stall(() => {
        const end = performance.now() + 200;
        while (performance.now() < end);
      });
      await asked;
      await a.add('k', 'renewed:a', 60_000);
      const client = new RedisClient(redis.url);
      expect(await client.get('music-gateway:refresh:k')).toBe('renewed:a');
      await client.del('music-gateway:refresh:k');
      client.close();
    }
  });
});

describeWith([REDIS_SERVER], 'two instances with Redis', () => {
  async function start(environment: Record<string, string> = {}) {
    const redis = await startRedis();
    const upstream = new ScriptedUpstream();
    let generation = 1;
    upstream.on('POST /v1/auth/refresh', ({ body }) => {
      const isSpent = JSON.parse(body).refresh_token !== `t${generation}`;
      if (isSpent) return new Response('', { status: 401 });
      generation++;
      return Response.json({ access_token: `a${generation}`, refresh_token: `t${generation}` });
    });
    const settings = testSettings({
      UPSTREAM_URL: upstream.upstreamUrl,
      IDP_URL: upstream.identityProviderUrl,
      ...environment,
    });
    const observer = { onDown: () => {}, onUp: () => {} };
    const instance = () =>
      refreshCoordinatorOver(settings, new RedisReplayStore(new RedisConnection(redis.url, observer)));
    return { redis, upstream, a: instance(), b: instance() };
  }

  it('both close the window 10 s after the successor was presented at one of them', async () => {
    const { redis, upstream, a, b } = await start();
    await using _ = redis;
    const presentedAt = Date.now();
    expect((await a.refresh('t1', newTrace(), presentedAt)).kind).toBe('renewed');
    b.present('t2', presentedAt);
    for (const instance of [a, b]) {
      expect((await instance.refresh('t1', newTrace(), presentedAt + 10_000)).kind).toBe('renewed');
    }
    expect(upstream.calls).toHaveLength(1);
    const trace = newTrace();
    expect((await a.refresh('t1', trace, presentedAt + 10_001)).kind).toBe('rejected');
    expect(trace.refreshTokenReused).toBe('presented');
    expect(upstream.last('POST /v1/auth/refresh').body).toBe('{"refresh_token":"t1"}');
    expect(upstream.calls).toHaveLength(2);
    await upstream.stop();
  });

  it('take over a claim that nobody holds, after the time that a refresh may take', async () => {
    const { redis, upstream, a } = await start({ TIMEOUT_SIGN_IN_MS: '1500' });
    await using _ = redis;
    const client = new RedisClient(redis.url);
    await client.set(`music-gateway:refresh:${refreshTokenHash('t1')}`, 'claimed:forged');
    expect((await a.refresh('t1', newTrace(), Date.now())).kind).toBe('renewed');
    expect(upstream.calls).toEqual(['POST /v1/auth/refresh']);
    client.close();
    await upstream.stop();
  });
});
