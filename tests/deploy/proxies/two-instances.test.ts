import { afterAll, beforeAll, expect, it } from 'bun:test';
import { dirname } from 'node:path';
import { Crowd, User } from '../../load/simulated-users.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { isUp } from '../../support/is-up.ts';
import { describeWith, program } from '../../support/requirements.ts';
import { SANDBOX_CLIENT } from '../../support/sandbox-account.ts';
import { ORIGIN } from '../../support/world.ts';
import { startVirtualMachine, VIRTUAL_MACHINE, type VirtualMachine } from '../virtual-machine.ts';
import { itWhileRedisResponds } from '../while-redis-responds.ts';
import { readStatistics } from './haproxy.ts';
import { openUpstreamGate, type UpstreamGate } from './upstream-gate.ts';

const RUN = new URL('../../../deploy/two-instances/run.sh', import.meta.url).pathname;
const USERS = 24;
const LISTENERS = 6;

describeWith(VIRTUAL_MACHINE, 'deploy/two-instances', () => {
  let machine: VirtualMachine;
  let gate: UpstreamGate;

  beforeAll(async () => {
    const upstreamVia = (address: string) => {
      gate = openUpstreamGate(address);
      return `http://127.0.0.1:${gate.port}`;
    };
    machine = await startVirtualMachine({ upstreamVia });
    await machine.startBoth();
  }, 60_000);

  afterAll(async () => {
    await machine[Symbol.asyncDispose]();
    await gate[Symbol.asyncDispose]();
  });

  const itWithBoth = (name: string, test: () => Promise<void>) =>
    itWhileRedisResponds(name, () => machine.missedRedis(), test);
  const servedDuring = async (request: () => Promise<unknown>) => {
    const before = await machine.instances();
    for (let times = 0; times < 20; times++) await request();
    const after = await machine.instances();
    return after.map(({ served }, index) => served - (before[index]?.served ?? 0)).sort((a, b) => a - b);
  };

  itWithBoth('serves one session from both instances, and refreshes it once', async () => {
    const { upstream } = machine.sandbox;
    const user = await User.signIn(machine, 'Two');
    const renewed = () => machine.counted('music_gateway_refreshes_total{outcome="renewed"}');
    const [before, atFirst] = [upstream.counts(), await machine.instances()];
    const counted = await renewed();
    // Each refresh changes the cookie by which HAProxy chooses: sooner or later the other instance is chosen.
    const haveBothServed = async () =>
      (await machine.instances()).every(({ served }, index) => served > (atFirst[index]?.served ?? 0));
    let round = 0;
    while (round < 3 || !(await haveBothServed())) {
      round++;
      upstream.expireAccessTokens();
      await Promise.all(Array.from({ length: 40 }, () => user.check()));
      expect(upstream.counts().refreshes - before.refreshes).toBe(round);
    }
    expect(user.outcomes).toEqual(Array(40 * round).fill(200));
    expect((await renewed()) - counted).toBe(round);
    expect(upstream.counts().refusedRefreshes).toBe(before.refusedRefreshes);
  });

  it('sends one session to one instance, and requests without cookies to both', async () => {
    const user = await User.signIn(machine, 'One');
    expect(await servedDuring(() => user.check())).toEqual([0, 20]);
    const health = { tls: { rejectUnauthorized: false } };
    const [least] = await servedDuring(() => fetch(new URL('/api/health', machine.base), health));
    expect(least).toBeGreaterThan(0);
  });

  it('takes no gateway out of service for a web page that posts to the statistics', async () => {
    for (const action of ['maint', 'drain', 'stop']) {
      const body = new URLSearchParams({ s: 'a', b: 'gateways', action });
      const response = await fetch(machine.statistics, { method: 'POST', body, redirect: 'manual' });
      expect(response.headers.get('location')).toEndWith('st=DENY');
    }
    expect((await machine.instances()).map(({ name, status }) => [name, status])).toEqual([
      ['a', 'UP'],
      ['b', 'UP'],
    ]);
  });

  itWithBoth('signs nobody out when one is killed under load, and sends no generation twice', async () => {
    const { upstream } = machine.sandbox;
    const released = Promise.withResolvers<void>();
    let waitingTracks = 0;
    const generations = gate.replace('POST /v1/music', async (forward) => {
      const response = await forward();
      waitingTracks++;
      await released.promise;
      return response;
    });
    const [sent, refused] = [gate.calls.length, upstream.counts().refusedRefreshes];
    const listen = async (listener: User) => {
      const response = await listener.generate();
      return response.status === 200 ? (await response.arrayBuffer()).byteLength : response.status;
    };
    const tracks: Promise<number>[] = [];
    // The session decides which instance it is.
    const isOneIdle = async () => (await machine.instances()).some(({ underWay }) => underWay === 0);
    while (tracks.length < LISTENERS || (await isOneIdle())) {
      tracks.push(listen(await User.signIn(machine, `Listener ${tracks.length}`)));
      await eventually(() => waitingTracks === tracks.length, 'the generation to wait');
    }
    using crowd = await Crowd.arrive(machine, USERS);
    await crowd.renews(3);

    // Every user's access is renewed, and the call that follows waits: the cookies in the browsers are spent, and only
    // the gateways know their successors. No refresh is under way then, because one that the upstream has made and the
    // instance has not yet written to Redis would be lost with the instance.
    let waitingProfiles = 0;
    const profiles = gate.replace('GET /v1/me', async (forward) => {
      const response = await forward();
      if (response.status === 200) {
        waitingProfiles++;
        await released.promise;
      }
      return response;
    });
    const before = upstream.counts().refreshes;
    upstream.expireAccessTokens();
    const renewed = () => upstream.counts().refreshes - before;
    await crowd.until(() => waitingProfiles === USERS && renewed() === USERS, 'every refresh');
    await machine.stop('a', 'SIGKILL');
    profiles.giveBack();
    generations.giveBack();
    released.resolve();

    await crowd.goesOn(3);
    await crowd.renews(3);
    await crowd.leave();
    expect(new Set(crowd.outcomes)).toEqual(new Set([200]));
    expect(upstream.counts().refusedRefreshes).toBe(refused);
    const received = (await Promise.all(tracks)).sort((a, b) => a - b);
    const lost = received.filter((each) => each === 502).length;
    expect(lost).toBeGreaterThan(0);
    const whole = received.at(-1) ?? 0;
    expect(whole).toBeGreaterThan(100_000);
    expect(received).toEqual([...Array(lost).fill(502), ...Array(tracks.length - lost).fill(whole)]);
    expect(gate.calls.slice(sent).filter((call) => call === 'POST /v1/music')).toHaveLength(tracks.length);
  });

  describeWith([program('redis-server'), program('openssl')], 'run.sh', () => {
    it('starts all of that with a certificate of its own, and ends it', async () => {
      const { sandbox } = machine;
      const port = await freePorts(7);
      const statistics = `127.0.0.1:${port + 6}`;
      const example = Bun.spawn(['sh', RUN], {
        env: {
          PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
          ...{ LISTEN: `127.0.0.1:${port}`, PORT_A: String(port + 1), PORT_B: String(port + 2) },
          ...{ METRICS_A: String(port + 3), METRICS_B: String(port + 4), REDIS_PORT: String(port + 5) },
          ...{ STATISTICS: statistics, ADMIN_SOCKET: `/tmp/run-${port}.sock`, ALLOWED_ORIGINS: ORIGIN },
          ...{ UPSTREAM_URL: sandbox.upstream.url, IDP_URL: sandbox.identityProviderUrl },
          ...{ IDP_CLIENT_ID: SANDBOX_CLIENT.clientId, IDP_REDIRECT_URI: SANDBOX_CLIENT.redirectUri },
        },
        stdio: ['ignore', 'ignore', 'ignore'],
      });
      const areUp = async () => {
        const instances = await readStatistics(`http://${statistics}/`).catch(() => []);
        return instances.filter(({ status }) => status === 'UP').length === 2;
      };
      await eventually(areUp, 'both gateways to be up', 60_000);
      const user = await User.signIn({ base: new URL(`https://127.0.0.1:${port}`), sandbox }, 'Ada');
      await user.check();
      expect(user.outcomes).toEqual([200]);
      const metrics = [port + 3, port + 4].map(async (each) =>
        (await fetch(`http://127.0.0.1:${each}/metrics`)).text(),
      );
      for (const page of await Promise.all(metrics)) expect(page).toContain('music_gateway_redis_up 1');
      example.kill('SIGTERM');
      expect(await example.exited).toBe(0);
      expect(await isUp(`http://127.0.0.1:${port + 1}`)).toBe(false);
      expect(await readStatistics(`http://${statistics}/`).catch(() => 'ended')).toBe('ended');
    });
  });
});
