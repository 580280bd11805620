import { expect, it } from 'bun:test';
import { eventually } from '../../support/eventually.ts';
import { describeWith } from '../../support/requirements.ts';
import { Crowd, User } from '../../support/simulated-users.ts';
import { startVirtualMachine, VIRTUAL_MACHINE, type VirtualMachine } from '../../support/virtual-machine.ts';

const GATEWAY = new URL('../../../src/index.ts', import.meta.url).href;
const VISITORS = 24;
const AUTHORS = 20;
const LISTENERS = 50;

describeWith(VIRTUAL_MACHINE, 'deploy/upgrade.sh', () => {
  const name = 'moves everybody to each of five releases without a gap, and leaves one that does not start';
  const run = async () => {
    await using machine = await startVirtualMachine();
    await upgradeUnderLoad(machine);
  };
  it(name, run, 600_000);

  it('moves nobody to a release without Redis, nor while Redis is away', async () => {
    await using machine = await startVirtualMachine();
    const alone = await machine.release(`
      delete process.env.REDIS_URL_FILE;
      process.env.REDIS_URL = 'redis://127.0.0.1:1';
      await import('${GATEWAY}');`);
    const failed = await machine.upgrade(alone, 5);
    expect(failed.status).toBe(1);
    expect(failed.errors).toContain('not healthy with Redis after 5 seconds: music-gateway@a goes on');
    expect(failed.errors).toContain('Redis cannot be used');
    await machine.stopRedis();
    const missesRedis = async () => (await machine.log('a')).includes('Redis cannot be used');
    await eventually(missesRedis, 'the gateway to miss Redis');
    const refused = await machine.upgrade();
    expect(refused).toMatchObject({ status: 1, output: '' });
    expect(refused.errors).toContain('music-gateway@a has no Redis');
    expect(await machine.activeInstances()).toEqual(['a']);
  }, 120_000);
});

async function upgradeUnderLoad(machine: VirtualMachine): Promise<void> {
  const { sandbox } = machine;
  const listener = await User.signIn(machine, 'Listener');
  const track = await listener.generate();
  const creationId = track.headers.get('x-music-creation-id') ?? '';
  const whole = `200 ${(await track.bytes()).length}`;
  let isOver = false;
  /** Returns how each of the requests has ended, with the length of its body. */
  const repeat = async (request: () => Promise<Response>) => {
    const outcomes: string[] = [];
    while (!isOver) {
      const outcome = request().then(
        async (response) => `${response.status} ${(await response.bytes()).length}`,
      );
      outcomes.push(await outcome.catch(String));
    }
    return outcomes;
  };
  const listened = Array.from({ length: LISTENERS }, () => repeat(() => listener.listen(creationId)));
  const generated = Array.from({ length: AUTHORS }, async (_, index) => {
    const author = await User.signIn(machine, `Author ${index}`);
    return repeat(() => author.generate());
  });
  using crowd = await Crowd.arrive(machine, VISITORS);

  const broken = await machine.release(`console.error('error: this release is broken');`);
  const upgrades = [];
  for (const isBroken of [false, false, true, false, false, false]) {
    sandbox.upstream.expireAccessTokens();
    upgrades.push(await (isBroken ? machine.upgrade(broken, 5) : machine.upgrade()));
    await crowd.goesOn(3);
  }
  isOver = true;
  await crowd.leave();
  const tracks = (await Promise.all(generated)).flat();
  const readings = (await Promise.all(listened)).flat();
  console.log(
    `upgrades: ${crowd.outcomes.length} session checks, ${tracks.length} generations, ${readings.length} readings`,
  );
  expect(upgrades.map(({ status }) => status)).toEqual([0, 0, 1, 0, 0, 0]);
  expect(upgrades[2]?.errors).toContain('this release is broken');
  expect(await machine.activeInstances()).toEqual(['b']);
  expect(new Set(crowd.outcomes)).toEqual(new Set([200]));
  expect(new Set([...tracks, ...readings])).toEqual(new Set([whole]));
  const { refusedRefreshes, generations } = sandbox.upstream.counts();
  expect(refusedRefreshes).toBe(0);
  // Not one was sent twice.
  expect(generations).toBe(tracks.length + 1);
}
