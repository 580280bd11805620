import { expect, it } from 'bun:test';
import { eventually } from '../../support/eventually.ts';
import { describeWith, LINUX, program } from '../../support/requirements.ts';
import { Crowd, User } from '../../support/simulated-users.ts';
import { startTwoInstances, type TwoInstances } from '../../support/two-instances.ts';

const REQUIREMENTS = [program('redis-server'), program('haproxy'), program('openssl'), LINUX];

const USERS = 24;
const LISTENERS = 6;

function itWithExample(name: string, test: (example: TwoInstances) => Promise<void>): void {
  const run = async () => {
    await using example = await startTwoInstances();
    await test(example);
  };
  it(name, run, 120_000);
}

describeWith(REQUIREMENTS, 'deploy/two-instances/run.sh', () => {
  itWithExample('serves one session from both instances, and refreshes it once', async (example) => {
    const { upstream } = example.sandbox;
    const user = await User.signIn(example, 'Two');
    // Each refresh changes the cookie by which HAProxy chooses: sooner or later the other instance is chosen.
    const haveBothServed = async () => (await example.instances()).every(({ served }) => served > 0);
    let round = 0;
    while (round < 3 || !(await haveBothServed())) {
      round++;
      upstream.expireAccessTokens();
      await Promise.all(Array.from({ length: 40 }, () => user.check()));
      expect(upstream.counts().refreshes).toBe(round);
    }
    expect(user.outcomes).toEqual(Array(40 * round).fill(200));
    expect(await example.counted('music_gateway_refreshes_total{outcome="renewed"}')).toBe(round);
    expect(upstream.counts().refusedRefreshes).toBe(0);
  });

  itWithExample(
    'sends one session to one instance, and requests without cookies to both',
    async (example) => {
      const user = await User.signIn(example, 'One');
      const servedDuring = async (request: () => Promise<unknown>) => {
        const before = await example.instances();
        for (let times = 0; times < 20; times++) await request();
        const after = await example.instances();
        return after.map(({ served }, index) => served - (before[index]?.served ?? 0)).sort((a, b) => a - b);
      };
      expect(await servedDuring(() => user.check())).toEqual([0, 20]);
      const health = { tls: { rejectUnauthorized: false } };
      const [least] = await servedDuring(() => fetch(new URL('/api/health', example.base), health));
      expect(least).toBeGreaterThan(0);
    },
  );

  itWithExample(
    'takes no gateway out of service for a web page that posts to the statistics',
    async ({ statistics, instances }) => {
      for (const action of ['maint', 'drain', 'stop']) {
        const body = new URLSearchParams({ s: 'a', b: 'gateways', action });
        const response = await fetch(statistics, { method: 'POST', body, redirect: 'manual' });
        expect(response.headers.get('location')).toEndWith('st=DENY');
      }
      expect((await instances()).map(({ name, status }) => ({ name, status }))).toEqual([
        { name: 'a', status: 'UP' },
        { name: 'b', status: 'UP' },
      ]);
    },
  );

  itWithExample(
    'signs nobody out when one is killed under load, and sends no generation twice',
    async (example) => {
      const { gate, sandbox } = example;
      const released = Promise.withResolvers<void>();
      let waitingTracks = 0;
      gate.replace('POST /v1/music', async (forward) => {
        const response = await forward();
        waitingTracks++;
        await released.promise;
        return response;
      });
      const listen = async (listener: User) => {
        const response = await listener.generate();
        return response.status === 200 ? (await response.arrayBuffer()).byteLength : response.status;
      };
      const tracks: Promise<number>[] = [];
      // The session decides which instance it is.
      const isOneIdle = async () => (await example.instances()).some(({ underWay }) => underWay === 0);
      while (tracks.length < LISTENERS || (await isOneIdle())) {
        tracks.push(listen(await User.signIn(example, `Listener ${tracks.length}`)));
        await eventually(() => waitingTracks === tracks.length, 'the generation to wait');
      }
      using crowd = await Crowd.arrive(example, USERS);
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
      const before = sandbox.upstream.counts().refreshes;
      sandbox.upstream.expireAccessTokens();
      const renewed = () => sandbox.upstream.counts().refreshes - before;
      await crowd.until(() => waitingProfiles === USERS && renewed() === USERS, 'every refresh');
      const cutOff = (await example.instances()).find(({ name }) => name === 'a')?.underWay ?? 0;
      await example.killFirst('SIGKILL');
      profiles.giveBack();
      released.resolve();

      await crowd.goesOn(3);
      await crowd.renews(3);
      await crowd.leave();
      const checks = crowd.outcomes.length;
      console.log(`two instances: ${checks} session checks; ${cutOff} requests under way at the one killed`);
      expect(new Set(crowd.outcomes)).toEqual(new Set([200]));
      expect(sandbox.upstream.counts().refusedRefreshes).toBe(0);

      const received = (await Promise.all(tracks)).sort((a, b) => a - b);
      const lost = received.filter((each) => each === 502).length;
      expect(lost).toBeGreaterThan(0);
      expect(received).toEqual([
        ...Array(lost).fill(502),
        ...Array(tracks.length - lost).fill(received.at(-1)),
      ]);
      expect(received.at(-1)).toBeGreaterThan(100_000);
      expect(gate.calls.filter((call) => call === 'POST /v1/music')).toHaveLength(tracks.length);
    },
  );

  itWithExample('fails no request when one is taken out of service before it is stopped', async (example) => {
    const listeners = await Promise.all(['Ada', 'Bea'].map((name) => User.signIn(example, name)));
    using crowd = await Crowd.arrive(example, USERS);
    let isOver = false;
    const generations = listeners.map(async (listener) => {
      const statuses = new Set<number>();
      while (!isOver) {
        const track = await listener.generate();
        statuses.add(track.status);
        await track.arrayBuffer();
      }
      return [...statuses];
    });
    await crowd.goesOn(5);

    await example.drainFirst();
    await example.killFirst('SIGTERM');
    await crowd.goesOn(5);
    isOver = true;
    expect(await Promise.all(generations)).toEqual([[200], [200]]);
    await crowd.leave();
    expect(new Set(crowd.outcomes)).toEqual(new Set([200]));
  });
});
