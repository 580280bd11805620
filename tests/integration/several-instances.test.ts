import { expect, it } from 'bun:test';
import { RedisClient } from 'bun';
import { decryptPair } from '../../src/gateway/refresh/sealed-pair.ts';
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts';
import { REDIS_SERVER, type Redis, startRedis } from '../support/redis.ts';
import { describeWith } from '../support/requirements.ts';
import { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { envelopeMessage, expectCleared, ORIGIN, storedTokens } from '../support/world.ts';

const COOKIE = 'svc_music_access=access-1; svc_music_refresh=refresh-1';

/** Rotates with reuse detection: a spent token ends every session, as at real providers. */
class RotatingUpstream extends ScriptedUpstream {
  refreshes = 0;
  reused = false;
  /** Awaited before a refresh is answered. */
  hold: Promise<void> | undefined;
  #spent = new Set<string>();
  #live = new Set<string>();

  constructor() {
    super();
    this.on('GET /v1/me', ({ headers }) => {
      const token = headers.get('authorization')?.slice('Bearer '.length) ?? '';
      return this.#live.has(token) && !this.reused
        ? Response.json({ token })
        : new Response('', { status: 401 });
    });
    this.on('POST /v1/auth/refresh', async ({ body }) => {
      const token: string = JSON.parse(body).refresh_token;
      await this.hold;
      this.refreshes++;
      if (this.#spent.has(token)) this.reused = true;
      if (this.reused) return Response.json({ error: { message: 'reused' } }, { status: 401 });
      this.#spent.add(token);
      const [user, generation] = token.split('-');
      const next = `${user === 'refresh' ? '' : `${user}-`}${Number(generation) + 1}`;
      this.#live.add(`access-${next}`);
      const refreshToken = user === 'refresh' ? `refresh-${next}` : next;
      return Response.json({ access_token: `access-${next}`, refresh_token: refreshToken, expires_in: 600 });
    });
    this.on('POST /v1/auth/logout', () => new Response(null, { status: 204 }));
  }

  async [Symbol.asyncDispose]() {
    await this.stop();
    expect(this.unexpected).toEqual([]);
  }
}

function session(gateway: GatewayProcess, cookie = COOKIE): Promise<Response> {
  return fetch(`${gateway.url}/api/auth/session`, { headers: { origin: ORIGIN, cookie } });
}

async function startTwo(upstream: ScriptedUpstream, redis: Redis) {
  const settings = { UPSTREAM_URL: upstream.upstreamUrl, REDIS_URL: redis.url };
  const [first, second] = await Promise.all([startGatewayProcess(settings), startGatewayProcess(settings)]);
  return {
    first,
    second,
    async [Symbol.asyncDispose]() {
      await Promise.all([first[Symbol.asyncDispose](), second[Symbol.asyncDispose]()]);
    },
  };
}

async function everythingIn(redis: Redis): Promise<Map<string, string>> {
  const client = new RedisClient(redis.url);
  const keys = await client.keys('*');
  const values = await Promise.all(keys.map((key) => client.get(key)));
  client.close();
  return new Map(keys.map((key, index) => [key, values[index] ?? '']));
}

describeWith([REDIS_SERVER], 'two instances with Redis', () => {
  it('make one refresh for 200 parallel requests with one expired pair, and clear no cookie', async () => {
    await using redis = await startRedis();
    await using upstream = new RotatingUpstream();
    await using instances = await startTwo(upstream, redis);
    const { first, second } = instances;
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, index) => session(index % 2 ? first : second)),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(200).fill(200));
    for (const answer of answers) {
      expect(storedTokens(answer)).toEqual({ svc_music_access: 'access-2', svc_music_refresh: 'refresh-2' });
    }
    expect(upstream.refreshes).toBe(1);
    expect(first.errors() + second.errors()).toBe('');
  });

  it('replay what the other has refreshed, until the successor was presented and renewed', async () => {
    await using redis = await startRedis();
    await using upstream = new RotatingUpstream();
    await using instances = await startTwo(upstream, redis);
    const { first, second } = instances;
    await session(first);
    expect(storedTokens(await session(second))['svc_music_refresh']).toBe('refresh-2');
    expect(upstream.refreshes).toBe(1);
    await session(second, 'svc_music_refresh=refresh-2');
    expectCleared(await session(first), 'production');
    expect(upstream.last('POST /v1/auth/refresh').body).toBe('{"refresh_token":"refresh-1"}');
    expect(upstream.refreshes).toBe(3);
  });

  it('share a sign-out: a refresh under way at the other is discarded, and its pair signed out', async () => {
    await using redis = await startRedis();
    await using upstream = new RotatingUpstream();
    await using instances = await startTwo(upstream, redis);
    const { first, second } = instances;
    const held = Promise.withResolvers<void>();
    upstream.hold = held.promise;
    const refreshing = session(first);
    await upstream.arrived('POST /v1/auth/refresh');
    const headers = { origin: ORIGIN, cookie: COOKIE };
    expectCleared(await fetch(`${second.url}/api/auth/logout`, { method: 'POST', headers }), 'production');
    held.resolve();
    const answer = await refreshing;
    await envelopeMessage(answer, 401);
    expect(answer.headers.getSetCookie()).toEqual([]);
    expect(upstream.last('POST /v1/auth/logout').body).toBe('{"refresh_token":"refresh-2"}');
    for (const instance of [first, second]) expectCleared(await session(instance), 'production');
    expect(upstream.refreshes).toBe(1);
  });

  it('recover when the one that refreshes is killed in the middle', async () => {
    await using redis = await startRedis();
    await using upstream = new RotatingUpstream();
    await using instances = await startTwo(upstream, redis);
    const { first, second } = instances;
    const never = Promise.withResolvers<void>();
    upstream.hold = never.promise;
    const lost = session(first);
    await upstream.arrived('POST /v1/auth/refresh');
    upstream.hold = undefined;
    const waiting = session(second);
    await upstream.arrived('GET /v1/me', 2);
    first.kill('SIGKILL');
    await expect(lost).rejects.toThrow();
    const answer = await waiting;
    expect(answer.status).toBe(200);
    expect(storedTokens(answer)['svc_music_refresh']).toBe('refresh-2');
    expect(upstream.refreshes).toBe(1);
    never.resolve();
  });

  it('keep nothing in Redis that is a token or that opens without one', async () => {
    await using redis = await startRedis();
    await using upstream = new RotatingUpstream();
    await using instances = await startTwo(upstream, redis);
    const { first, second } = instances;
    await session(first);
    await session(second, 'svc_music_refresh=refresh-2');
    const everything = await everythingIn(redis);
    // Beside each pair, the mark that its refresh token was issued, and when it was presented.
    const marks = new Map([...everything].filter(([key]) => key.startsWith('music-gateway:issued:')));
    const records = new Map([...everything].filter(([key]) => !marks.has(key)));
    expect(records.size).toBe(2);
    expect([...marks.values()].map((value) => /^\d+$/.test(value)).toSorted()).toEqual([false, true]);
    const dump = [...everything].flat().join('\n');
    const decoded = [...records.values()]
      .map((value) => Buffer.from(value, 'base64url').toString('latin1'))
      .join('\n');
    for (const token of ['access-', 'refresh-'])
      expect(dump.replaceAll('music-gateway:refresh:', '') + decoded).not.toContain(token);
    const sealed = [...records.values()].map((value) => value.replace('renewed:', ''));
    const openedBy = async (token: string) => {
      const pairs = await Promise.all(sealed.map((value) => decryptPair(value, token)));
      return pairs.filter((pair) => pair !== undefined);
    };
    expect(await openedBy('refresh-1')).toHaveLength(1);
    for (const token of ['access-1', '']) expect(await openedBy(token)).toHaveLength(0);
  });
});

/** Every user comes twice at once, to one instance, with an expired pair; gives the longest wait in milliseconds. */
async function visit(gateway: GatewayProcess, users: string[]): Promise<number> {
  const waits = await Promise.all(
    users.flatMap((user) =>
      [1, 2].map(async () => {
        const begun = performance.now();
        const answer = await session(gateway, `svc_music_access=old; svc_music_refresh=${user}-1`);
        expect(answer.status).toBe(200);
        return performance.now() - begun;
      }),
    ),
  );
  return Math.max(...waits);
}

function usersNamed(name: string): string[] {
  return Array.from({ length: 20 }, (_, index) => `${name}${index}`);
}

describeWith([REDIS_SERVER], 'an instance whose Redis fails', () => {
  it('answers every request while Redis is stopped, stalled and back again, and says so once each time', async () => {
    await using redis = await startRedis();
    await using upstream = new RotatingUpstream();
    await using gateway = await startGatewayProcess({
      UPSTREAM_URL: upstream.upstreamUrl,
      REDIS_URL: redis.url,
    });
    const again = async (times: number) => {
      while (gateway.said('Redis answers again') < times) await Bun.sleep(20);
    };
    const waits: Record<string, number> = { up: await visit(gateway, usersNamed('up')) };
    await redis.stop();
    waits['stopped'] = await visit(gateway, usersNamed('stopped'));
    // What was refreshed while Redis was up, and while it was down, is still known.
    expect((await session(gateway, 'svc_music_access=old; svc_music_refresh=up0-1')).status).toBe(200);
    await redis.start();
    await again(1);
    expect((await session(gateway, 'svc_music_access=old; svc_music_refresh=stopped0-1')).status).toBe(200);
    expect([...(await everythingIn(redis)).keys()].length).toBeGreaterThanOrEqual(40);
    redis.stall();
    waits['stalled'] = await visit(gateway, usersNamed('stalled'));
    redis.resume();
    await again(2);
    waits['resumed'] = await visit(gateway, usersNamed('resumed'));
    expect(upstream.reused).toBe(false);
    expect(gateway.said('Redis does not answer')).toBe(2);
    console.log(
      `longest waits in ms: ${JSON.stringify(waits, (_, value) => (typeof value === 'number' ? Math.round(value) : value))}`,
    );
  });

  it('starts and works when Redis is not there at all', async () => {
    await using upstream = new RotatingUpstream();
    await using gateway = await startGatewayProcess({
      UPSTREAM_URL: upstream.upstreamUrl,
      REDIS_URL: 'redis://127.0.0.1:1',
    });
    await visit(gateway, usersNamed('alone'));
    expect(upstream.refreshes).toBe(20);
    expect(gateway.said('Redis does not answer')).toBe(1);
  });
});
