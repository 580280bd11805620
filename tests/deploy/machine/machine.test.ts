import { afterAll, beforeAll, expect, it } from 'bun:test';
import { randomBytes } from 'node:crypto';
import manifest from '../../../package.json';
import type { Sandbox } from '../../../src/demo/sandbox/sandbox.ts';
import { Crowd } from '../../load/crowd.ts';
import { eventually } from '../../support/eventually.ts';
import { isUp } from '../../support/is-up.ts';
import { RawConnection } from '../../support/raw-http.ts';
import { REDIS_SERVER, type Redis, startRedis } from '../../support/redis.ts';
import { describeWith, program, ROOT } from '../../support/requirements.ts';
import type { Ended } from '../../support/run-to-end.ts';
import { startTestSandbox } from '../../support/sandbox-account.ts';
import { ORIGIN } from '../../support/world.ts';
import { Podman } from '../container/podman.ts';
import { type SystemdMachine, startSystemdMachine } from './systemd-machine.ts';

const PROGRAMS = ['podman', 'runc', 'systemctl', 'setpriv', 'haproxy', 'flock', 'git', 'pgrep'];
const [VISITORS, AUTHORS] = [8, 4];
const WITHOUT_REDIS = `
  delete process.env.REDIS_URL_FILE;
  process.env.REDIS_URL = 'redis://127.0.0.1:1';
  await import('/opt/music-gateway/0.1.0/src/index.ts');`;
const STAYS = /Redis cannot be used.*not healthy with Redis after 10 seconds: music-gateway@[ab] goes on/s;

describeWith([...PROGRAMS.map(program), REDIS_SERVER, ROOT], 'a machine under systemd', () => {
  const key = randomBytes(32).toString('base64url');
  const stack = new AsyncDisposableStack();
  let redis: Redis;
  let sandbox: Sandbox;
  let host: SystemdMachine;
  let installed: Ended;

  beforeAll(async () => {
    redis = stack.use(await startRedis('--requirepass', 'hush-redis'));
    sandbox = stack.use(await startTestSandbox({ pace: 8, startingBalance: 1_000_000 }));
    host = await startSystemdMachine(stack.use(new Podman()), sandbox);
    await host.keepSecret('cookie-keys', key);
    await keepRedisUrl(':hush-redis@');
    installed = await host.installRelease();
    // By Debian's own unit, as the operating page says; it gives up root's rights.
    await host.restart('haproxy');
    await eventually(() => isUp(host.base.origin), `the gateway to respond after\n${installed.errors}`);
  }, 180_000);

  afterAll(() => stack.disposeAsync(), 60_000);

  const keepRedisUrl = (password: string) =>
    host.keepSecret('redis-url', redis.url.replace('//', `//${password}`));
  /** The instances of which systemctl says so. */
  const instances = async (verb: 'is-active' | 'is-enabled') => {
    const states = ['a', 'b'].map((name) => host.run('systemctl', verb, '--quiet', `music-gateway@${name}`));
    return (await Promise.all(states)).map(({ status }, index) => (status === 0 ? 'ab'[index] : '')).join('');
  };

  it('has what the lines of the operating page copy from a checkout, and no more', async () => {
    expect(installed.status).toBe(0);
    expect(installed.output).toContain('net.ipv4.tcp_wmem = 4096 16384 131072');
    // What sysctl says before the settings of others.
    expect(installed.output).not.toContain('Applying');
    const list = `cd ${host.release} && ls -d .* * node_modules/* node_modules/@*/*`;
    const paths = (await host.run('sh', '-c', list)).output.split('\n');
    expect(paths).toEqual(expect.arrayContaining(['.env.example', 'src', 'node_modules/elysia']));
    const packages = [...Object.keys(manifest.devDependencies), 'left'].map((name) => `node_modules/${name}`);
    expect(['.env', '.git', ...packages].filter((path) => paths.includes(path))).toEqual([]);
    const { output: mode } = await host.run('stat', '--format', '%a', '/etc/music-gateway/settings.env');
    expect(mode.trim()).toBe('600');
  });

  it('gives the kernel its own bounds back', async () => {
    const { status, output } = await host.undoBounds();
    const own = await Bun.file('/proc/sys/net/ipv4/tcp_wmem').text();
    expect([status, output]).toEqual([0, expect.stringContaining(`net.ipv4.tcp_wmem = ${own.trim()}\n`)]);
    expect((await host.run('ls', '/etc/sysctl.d')).output).not.toContain('60-music-gateway.conf');
  });

  it('checks the configuration as the service would see it', async () => {
    expect((await host.checkRelease()).status).toBe(0);
    // The journal may get the last lines after the service has ended.
    const hasSaid = async () =>
      (await host.log('music-gateway@check')).includes(`ok: REDIS_URL: ${redis.url} works`);
    await eventually(hasSaid, 'what the check says of Redis');
    await keepRedisUrl('');
    const check = host.restart('music-gateway@check');
    await expect(check).rejects.toThrow('does not accept the user name or the password');
    await keepRedisUrl(':hush-redis@');
  });

  it('shows no secret to another user, nor in what systemd knows of the unit, and filters system calls', async () => {
    const unit = `music-gateway@${await instances('is-active')}`;
    const { output: pid } = await host.run('systemctl', 'show', '--property', 'MainPID', '--value', unit);
    const process = `/proc/${pid.trim()}`;
    const places = [`${process}/environ`, `/run/credentials/${unit}.service/cookie-keys`];
    const [environment, credential] = await Promise.all(places.map((path) => host.run('cat', path)));
    expect(environment?.output).toContain('COOKIE_KEYS_FILE=');
    expect(credential?.output).toBe(`${key}\n`);
    const { output: known } = await host.run('systemctl', 'show', unit);
    for (const text of [environment?.output, known]) {
      expect(text).not.toContain(key);
      expect(text).not.toContain('hush-redis');
    }
    const stranger = ['setpriv', '--reuid=65534', '--clear-groups', 'cat'];
    for (const path of places) expect((await host.run(...stranger, path)).output).toBe('');
    expect((await host.run('cat', `${process}/status`)).output).toMatch(/^Seccomp:\t2$/m);
  });

  it('moves everybody to another release and back, and stays where one has no Redis', async () => {
    const before = sandbox.upstream.counts();
    const service = { base: host.base, sandbox };
    await using crowd = await Crowd.arrive(service, { checker: VISITORS, author: AUTHORS });
    const alone = await host.install('alone', WITHOUT_REDIS);
    let serving = await instances('is-active');
    for (const release of [undefined, alone, undefined]) {
      sandbox.upstream.expireAccessTokens();
      const { status, errors } = await host.upgrade(release);
      expect(errors).toMatch(release ? STAYS : /^$/);
      expect(status).toBe(release ? 1 : 0);
      if (!release) serving = serving === 'a' ? 'b' : 'a';
      expect([await instances('is-active'), await instances('is-enabled')]).toEqual([serving, serving]);
      await crowd.goesOn(3);
    }
    await crowd[Symbol.asyncDispose]();
    // Every order was sent once, and every track is in the library as it was heard.
    expect(crowd.problems.list()).toEqual([]);
    const { refusedRefreshes, generations } = sandbox.upstream.counts();
    expect(refusedRefreshes).toBe(before.refusedRefreshes);
    expect(generations - before.generations).toBe(crowd.orders);
  }, 300_000);

  it('moves nobody while Redis is away', async () => {
    const active = await instances('is-active');
    const said = async (text: string) => (await host.log(`music-gateway@${active}`)).split(text).length - 1;
    const before = await said('Redis cannot be used');
    await redis.stop();
    await eventually(async () => (await said('Redis cannot be used')) > before, 'the gateway to miss Redis');
    const refused = await host.upgrade();
    expect(refused).toMatchObject({ status: 1, output: '' });
    expect(refused.errors).toContain(`music-gateway@${active} has no Redis`);
    expect(await instances('is-active')).toBe(active);
  });

  it('replaces the only instance at once, which finishes what is in flight', async () => {
    const url = `http://127.0.0.1:${host.gatewayPort}`;
    const client = new RawConnection(host.gatewayPort);
    const head = `POST /api/auth/idp HTTP/1.1\r\nHost: a\r\nOrigin: ${ORIGIN}\r\nContent-Length: 2\r\n`;
    client.send(`${head}Expect: 100-continue\r\n\r\n`);
    await eventually(() => client.received !== '', 'a to wait for the body');
    expect(await host.replaceInstance()).toMatchObject({ status: 0 });
    await eventually(() => isUp(url), 'b to listen');
    expect([await instances('is-active'), await instances('is-enabled')]).toEqual(['b', 'b']);
    client.send('{}');
    await eventually(() => client.received.includes(' 400 '), 'the response of a');
  });
});
