import { afterAll, beforeAll, expect, it } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { Crowd, User } from '../../load/simulated-users.ts';
import { eventually } from '../../support/eventually.ts';
import { REDIS_SERVER, type Redis, RedisAdmin, startRedis } from '../../support/redis.ts';
import { describeWith, program, ROOT } from '../../support/requirements.ts';
import { SANDBOX_CLIENT, startTestSandbox } from '../../support/sandbox-account.ts';
import { ORIGIN } from '../../support/world.ts';
import { Podman } from '../container/podman.ts';
import { itWhileRedisResponds } from '../while-redis-responds.ts';
import { type SystemdMachine, startSystemdMachine } from './systemd-machine.ts';

const REQUIREMENTS = [
  ...[program('podman'), program('runc'), program('systemctl'), program('setpriv')],
  ...[program('haproxy'), program('openssl'), program('flock')],
  ...[REDIS_SERVER, ROOT],
];
const [VISITORS, AUTHORS, LISTENERS] = [8, 4, 10];
const OTHER_REDIS = `
  delete process.env.REDIS_URL_FILE;
  process.env.REDIS_URL = 'redis://127.0.0.1:1';
  await import('/opt/music-gateway/0.1.0/src/index.ts');`;

describeWith(REQUIREMENTS, 'a machine with the unit, HAProxy and Redis, under systemd', () => {
  let podman: Podman;
  let redis: Redis;
  let sandbox: Awaited<ReturnType<typeof startTestSandbox>>;
  let host: SystemdMachine;
  const [first, second] = [newKey(), newKey()];

  beforeAll(async () => {
    podman = new Podman();
    redis = await startRedis();
    using admin = new RedisAdmin(redis.url);
    await admin.send('CONFIG', ['SET', 'requirepass', 'hush-redis']);
    sandbox = await startTestSandbox({ pace: 2, startingBalance: 1_000_000 });
    host = await startSystemdMachine(podman, {
      UPSTREAM_URL: sandbox.upstream.url,
      IDP_URL: sandbox.identityProviderUrl,
      IDP_CLIENT_ID: SANDBOX_CLIENT.clientId,
      IDP_REDIRECT_URI: SANDBOX_CLIENT.redirectUri,
      ALLOWED_ORIGINS: ORIGIN,
    });
    await host.keepSecret('cookie-keys', first);
    await keepRedisUrl(':hush-redis@');
    // By Debian's own unit, as the operating page says; it gives up root's rights.
    await host.restart('haproxy');
    await host.run('systemctl', 'enable', 'music-gateway@a');
    await restart();
  }, 120_000);

  afterAll(async () => {
    await podman[Symbol.asyncDispose]();
    await Promise.all([sandbox.stop(), redis[Symbol.asyncDispose]()]);
  }, 60_000);

  const keepRedisUrl = (password: string) =>
    host.keepSecret('redis-url', redis.url.replace('//', `//${password}`));
  const restart = async () => {
    await host.restart('music-gateway@a');
    const health = { tls: { rejectUnauthorized: false }, keepalive: false };
    const isUp = () =>
      fetch(new URL('/api/health', host.base), health).then(
        ({ ok }) => ok,
        () => false,
      );
    await eventually(isUp, 'the gateway to respond', 20_000).catch(async (error) => {
      throw new Error(await host.log('music-gateway@a'), { cause: error });
    });
  };
  const logs = async () => (await host.log('music-gateway@a')) + (await host.log('music-gateway@b'));
  /** The instances of which systemctl says so. */
  const instances = async (verb: 'is-active' | 'is-enabled') => {
    const states = ['a', 'b'].map((name) => host.run('systemctl', verb, '--quiet', `music-gateway@${name}`));
    return (await Promise.all(states)).map(({ status }, index) => (status === 0 ? 'ab'[index] : '')).join('');
  };

  it('checks the configuration as the service would see it', async () => {
    await host.restart('music-gateway@check');
    expect(await host.log('music-gateway@check')).toContain(`ok: REDIS_URL: ${redis.url} works`);
    await keepRedisUrl('');
    const check = host.restart('music-gateway@check');
    await expect(check).rejects.toThrow('does not accept the user name or the password');
    await keepRedisUrl(':hush-redis@');
  });

  it('runs the gateway with credentials, whose keys a restart replaces without an end of sessions', async () => {
    const user = await User.signIn({ base: host.base, sandbox }, 'Ada');
    await host.keepSecret('cookie-keys', `${second},${first}`);
    await restart();
    await user.check();
    await host.keepSecret('cookie-keys', second);
    await restart();
    await user.check();
    // Its access cookie was sealed with the key that is gone.
    expect(user.outcomes).toEqual([200, 'other']);
    // On a busy machine it may have missed Redis for a moment. A wrong password would have another cause.
    expect(await logs()).not.toMatch(/"level":"(warn|error)"(?!.*(open files|"cause":"TimeoutError"))/);
  });

  it('shows no secret to another user, nor in what systemd knows of the unit, and filters system calls', async () => {
    const unit = 'music-gateway@a';
    const { output: pid } = await host.run('systemctl', 'show', '--property', 'MainPID', '--value', unit);
    const process = `/proc/${pid.trim()}`;
    const places = [`${process}/environ`, `/run/credentials/${unit}.service/cookie-keys`];
    const [environment, credential] = await Promise.all(places.map((path) => host.run('cat', path)));
    expect(environment?.output).toContain('COOKIE_KEYS_FILE=');
    expect(credential?.output).toBe(`${second}\n`);
    const { output: known } = await host.run('systemctl', 'show', unit);
    for (const text of [environment?.output, known]) {
      expect(text).not.toContain(second);
      expect(text).not.toContain('hush-redis');
    }
    const stranger = ['setpriv', '--reuid=65534', '--clear-groups', 'cat'];
    for (const path of places) expect((await host.run(...stranger, path)).output).toBe('');
    expect((await host.run('cat', `${process}/status`)).output).toMatch(/^Seccomp:\t2$/m);
  });

  const missed = async () => (await logs()).split('Redis cannot be used').length - 1;
  const name = 'moves everybody to another release and back, and stays where one does not start';
  itWhileRedisResponds(name, missed, async () => {
    const service = { base: host.base, sandbox };
    const listener = await User.signIn(service, 'Listener');
    const track = await listener.generate();
    const creationId = track.headers.get('x-music-creation-id') ?? '';
    const whole = `200 ${(await track.bytes()).length}`;
    const before = sandbox.upstream.counts();
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
    const authors = await Promise.all(
      Array.from({ length: AUTHORS }, (_, index) => User.signIn(service, `Author ${index}`)),
    );
    const listened = Array.from({ length: LISTENERS }, () => repeat(() => listener.listen(creationId)));
    const generated = authors.map((author) => repeat(() => author.generate()));
    using crowd = await Crowd.arrive(service, VISITORS);

    const broken = await host.install('broken', `console.error('error: this release is broken');`);
    const seen: unknown[] = [];
    for (const release of [undefined, broken, undefined]) {
      sandbox.upstream.expireAccessTokens();
      const { status, errors } = await host.upgrade(release);
      expect(errors).toMatch(release ? /this release is broken/ : /^$/);
      seen.push([status, await instances('is-active'), await instances('is-enabled')]);
      await crowd.goesOn(3);
    }
    isOver = true;
    await crowd.leave();
    const [tracks, readings] = [(await Promise.all(generated)).flat(), (await Promise.all(listened)).flat()];
    const [old, other] = (await instances('is-active')) === 'a' ? 'ab' : 'ba';
    expect(seen).toEqual([
      [0, other, other],
      [1, other, other],
      [0, old, old],
    ]);
    expect(new Set(crowd.outcomes)).toEqual(new Set([200]));
    expect(new Set([...tracks, ...readings])).toEqual(new Set([whole]));
    const { refusedRefreshes, generations } = sandbox.upstream.counts();
    // Nobody was signed out, and no order was sent twice.
    expect(refusedRefreshes).toBe(before.refusedRefreshes);
    expect(generations - before.generations).toBe(tracks.length);
  });

  it('moves nobody to a release without Redis, nor while Redis is away', async () => {
    const active = await instances('is-active');
    const failed = await host.upgrade(await host.install('alone', OTHER_REDIS));
    expect(failed.status).toBe(1);
    expect(failed.errors).toContain(
      `not healthy with Redis after 10 seconds: music-gateway@${active} goes on`,
    );
    expect(failed.errors).toContain('Redis cannot be used');
    const before = await missed();
    await redis.stop();
    await eventually(async () => (await missed()) > before, 'the gateway to miss Redis');
    const refused = await host.upgrade();
    expect(refused).toMatchObject({ status: 1, output: '' });
    expect(refused.errors).toContain(`music-gateway@${active} has no Redis`);
    expect(await instances('is-active')).toBe(active);
  });
});

function newKey(): string {
  return randomBytes(32).toString('base64url');
}
