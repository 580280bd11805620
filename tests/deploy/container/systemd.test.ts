import { afterAll, beforeAll, expect, it } from 'bun:test';
import { eventually } from '../../support/eventually.ts';
import { isUp } from '../../support/is-up.ts';
import { REDIS_SERVER, type Redis, RedisAdmin, startRedis } from '../../support/redis.ts';
import { describeWith, program, ROOT } from '../../support/requirements.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { ORIGIN } from '../../support/world.ts';
import { Podman } from './podman.ts';
import { newKey, opens, sealedCookies } from './secrets.ts';
import { type SystemdMachine, startSystemdMachine } from './systemd-machine.ts';

const REQUIREMENTS = [
  ...[program('podman'), program('runc'), program('systemctl'), program('setpriv')],
  ...[program('haproxy'), program('openssl'), program('flock')],
  ...[REDIS_SERVER, ROOT],
];
const GATEWAY = 'music-gateway@a';

describeWith(REQUIREMENTS, 'the unit, under systemd', () => {
  let podman: Podman;
  let redis: Redis;
  let upstream: ScriptedUpstream;
  let host: SystemdMachine;
  const [first, second] = [newKey(), newKey()];

  beforeAll(async () => {
    podman = new Podman();
    redis = await startRedis();
    using admin = new RedisAdmin(redis.url);
    await admin.send('CONFIG', ['SET', 'requirepass', 'hush-redis']);
    upstream = new ScriptedUpstream();
    host = await startSystemdMachine(podman, {
      UPSTREAM_URL: upstream.upstreamUrl,
      IDP_URL: upstream.identityProviderUrl,
      IDP_CLIENT_ID: 'studio',
      IDP_REDIRECT_URI: `${ORIGIN}/callback`,
      ALLOWED_ORIGINS: ORIGIN,
    });
    await host.keepSecret('cookie-keys', first);
    await keepRedisUrl(':hush-redis@');
  }, 120_000);

  afterAll(async () => {
    await podman[Symbol.asyncDispose]();
    await Promise.all([upstream.stop(), redis[Symbol.asyncDispose]()]);
  }, 60_000);

  const keepRedisUrl = (password: string) =>
    host.keepSecret('redis-url', redis.url.replace('//', `//${password}`));
  const restart = async () => {
    await host.restart(GATEWAY);
    await eventually(() => isUp(host.urls.a), 'the gateway to respond', 20_000).catch(async (error) => {
      throw new Error(await host.log(GATEWAY), { cause: error });
    });
  };

  it('keeps sessions over restarts and a rotation of the keys, which are in credentials', async () => {
    const world = { url: host.urls.a, upstream };
    await restart();
    const cookies = await sealedCookies(world);
    expect(cookies).not.toContain('access-1');
    await restart();
    expect(await opens(world, cookies)).toBe(true);
    await host.keepSecret('cookie-keys', `${second},${first}`);
    await restart();
    expect(await opens(world, cookies)).toBe(true);
    const newer = await sealedCookies(world);
    await host.keepSecret('cookie-keys', second);
    await restart();
    expect([await opens(world, newer), await opens(world, cookies)]).toEqual([true, false]);
    // On a busy machine it may have missed Redis for a moment. A wrong password would have another cause.
    expect(await host.log(GATEWAY)).not.toMatch(
      /"level":"(warn|error)"(?!.*(open files|"cause":"TimeoutError"))/,
    );
  });

  it('shows no secret to another user, nor in what systemd knows of the unit', async () => {
    const { output: pid } = await host.run('systemctl', 'show', '--property', 'MainPID', '--value', GATEWAY);
    const places = [`/proc/${pid.trim()}/environ`, `/run/credentials/${GATEWAY}.service/cookie-keys`];
    const [environment, credential] = await Promise.all(places.map((path) => host.run('cat', path)));
    expect(environment?.output).toContain('COOKIE_KEYS_FILE=');
    expect(credential?.output).toBe(`${second}\n`);
    const { output: unit } = await host.run('systemctl', 'show', GATEWAY);
    for (const text of [environment?.output, unit]) {
      expect(text).not.toContain(second);
      expect(text).not.toContain('hush-redis');
    }
    for (const path of places)
      expect((await host.run('setpriv', '--reuid=65534', '--clear-groups', 'cat', path)).output).toBe('');
  });

  it('checks the configuration as the service would see it', async () => {
    upstream
      .on('GET /v1/models', () => new Response('', { status: 401 }))
      .on('POST /oauth/token', () => Response.json({ error: 'invalid_grant' }, { status: 400 }));
    await host.restart('music-gateway@check');
    expect(await host.log('music-gateway@check')).toContain(`ok: REDIS_URL: ${redis.url} works`);
    await keepRedisUrl('');
    await expect(host.restart('music-gateway@check')).rejects.toThrow(
      'does not accept the user name or the password',
    );
  });

  it('is replaced by another release, and stays as it is when that one does not start', async () => {
    await keepRedisUrl(':hush-redis@');
    await restart();
    await host.startProxy();
    const cookies = await sealedCookies({ url: host.urls.a, upstream });
    const isActive = async (unit: string) => (await host.run('systemctl', 'is-active', unit)).output.trim();
    const upgraded = await host.upgrade();
    expect(upgraded).toMatchObject({ status: 0, errors: '' });
    expect(await opens({ url: host.urls.b, upstream }, cookies)).toBe(true);
    expect([await isActive(GATEWAY), await isActive('music-gateway@b')]).toEqual(['inactive', 'active']);
    await host.run('mkdir', '-p', '/opt/music-gateway/broken/src', '/opt/music-gateway/broken/node_modules');
    await host.run('touch', '/opt/music-gateway/broken/src/index.ts');
    expect((await host.upgrade('/opt/music-gateway/broken')).status).toBe(1);
    expect([await isActive(GATEWAY), await isActive('music-gateway@b')]).toEqual(['inactive', 'active']);
    expect(await opens({ url: host.urls.b, upstream }, cookies)).toBe(true);
  });
});
