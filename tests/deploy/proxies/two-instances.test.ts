import { afterAll, beforeAll, expect, it } from 'bun:test';
import { Crowd } from '../../load/crowd.ts';
import { User } from '../../load/user.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { isUp } from '../../support/is-up.ts';
import { describeWith } from '../../support/requirements.ts';
import { sandboxSettings, startTestSandbox } from '../../support/sandbox-account.ts';
import { ORIGIN } from '../../support/world.ts';
import {
  readStatistics,
  startVirtualMachine,
  VIRTUAL_MACHINE,
  type VirtualMachine,
} from '../virtual-machine.ts';
import { openUpstreamGate, type UpstreamGate } from './upstream-gate.ts';

const RUN = new URL('../../../deploy/two-instances/run.sh', import.meta.url).pathname;
const USERS = 24;

describeWith(VIRTUAL_MACHINE, 'deploy/two-instances', () => {
  const stack = new AsyncDisposableStack();
  let machine: VirtualMachine;
  let gate: UpstreamGate;

  beforeAll(async () => {
    const sandbox = stack.use(await startTestSandbox());
    gate = stack.use(openUpstreamGate(sandbox.upstream.url));
    machine = stack.use(await startVirtualMachine(sandbox, `http://127.0.0.1:${gate.port}`));
  }, 60_000);

  afterAll(() => stack.disposeAsync());

  /** How many of 20 requests each instance has served, the smaller number first. */
  const servedOf20 = async (request: () => Promise<unknown>) => {
    const served = async () => (await machine.instances()).map((each) => Number(each['hrsp_2xx']));
    const before = await served();
    for (let times = 0; times < 20; times++) await request();
    return (await served()).map((count, index) => count - Number(before[index])).sort((a, b) => a - b);
  };

  it('sends one session to one instance, and requests without cookies to both', async () => {
    const user = await User.signIn(machine, 'One');
    expect(await servedOf20(() => user.request('/api/auth/session'))).toEqual([0, 20]);
    const [least] = await servedOf20(() => isUp(machine.base.origin));
    expect(least).toBeGreaterThan(0);
  });

  it('signs nobody out when one is killed under load, and both go on to share refreshes', async () => {
    const { upstream } = machine.sandbox;
    const refused = upstream.counts().refusedRefreshes;
    await using crowd = await Crowd.arrive(machine, { checker: USERS });
    await crowd.renews(3);

    // Every user's access is renewed, and the call that follows waits: the cookies in the browsers are spent, and only
    // the gateways know their successors. No refresh is under way then, because one that the upstream has made and the
    // instance has not yet written to Redis would be lost with the instance.
    const released = Promise.withResolvers<void>();
    let waiting = 0;
    const profiles = gate.replace('GET /v1/me', async (forward) => {
      const response = await forward();
      if (response.status === 200) {
        waiting++;
        await released.promise;
      }
      return response;
    });
    const before = upstream.counts().refreshes;
    upstream.expireAccessTokens();
    const renewed = () => upstream.counts().refreshes - before;
    await crowd.until(() => waiting === USERS && renewed() === USERS, 'every refresh');
    await machine.kill('a');
    profiles.giveBack();
    released.resolve();

    await crowd.goesOn(3);
    await crowd.renews(3);
    await machine.start('a');
    await crowd.renews(3);
    await crowd[Symbol.asyncDispose]();
    expect(crowd.problems.list()).toEqual([]);
    expect(upstream.counts().refusedRefreshes).toBe(refused);
  }, 300_000);

  it('runs as run.sh starts it, with a certificate of its own, and ends with it', async () => {
    const { sandbox } = machine;
    const port = await freePorts(7);
    const names = 'PORT_A PORT_B METRICS_A METRICS_B REDIS_PORT'.split(' ');
    const ports = Object.fromEntries(names.map((name, index) => [name, String(port + 1 + index)]));
    const addresses = { LISTEN: `127.0.0.1:${port}`, STATISTICS: `127.0.0.1:${port + 6}` };
    const settings = { ...sandboxSettings(sandbox), ALLOWED_ORIGINS: ORIGIN };
    const { PATH } = process.env;
    const example = Bun.spawn(['sh', RUN], {
      env: { PATH, ...ports, ...addresses, ...settings, ADMIN_SOCKET: `/tmp/run-${port}.sock` },
      stdio: ['ignore', 'ignore', 'ignore'],
    });
    const seen = () => readStatistics(`http://${addresses.STATISTICS}/`).catch(() => []);
    const areUp = async () => (await seen()).filter(({ status }) => status === 'UP').length === 2;
    await eventually(areUp, 'both gateways to be up', 60_000);
    const user = await User.signIn({ base: new URL(`https://127.0.0.1:${port}`), sandbox }, 'Ada');
    expect(await (await user.request('/api/auth/session')).text()).toContain('"Ada"');
    for (const metrics of [port + 3, port + 4]) {
      const page = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
      expect(page).toContain('music_gateway_redis_up 1');
    }
    example.kill('SIGTERM');
    expect(await example.exited).toBe(0);
    expect([await isUp(`http://127.0.0.1:${port + 1}`), await seen()]).toEqual([false, []]);
  });
});
