import { expect, it } from 'bun:test';
import { fileURLToPath } from 'node:url';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { startGatewayProcess } from '../../support/gateway-process.ts';
import { REDIS_SERVER, type Redis, RedisAdmin, startRedis } from '../../support/redis.ts';
import { describeWith, program } from '../../support/requirements.ts';
import { Rotation, SharedUpstream } from '../../support/rotating-upstream.ts';
import { REFRESH } from '../../support/session-calls.ts';
import { request, storedTokens } from '../../support/world.ts';

const CONFIGURATION = fileURLToPath(new URL('../../../deploy/redis/haproxy.cfg', import.meta.url));
const USERS = 12;

/** Runs until the test ends. */
function run(command: string[], environment: Record<string, string> = {}): AsyncDisposable {
  const env = { PATH: process.env['PATH'], ...environment };
  const child = Bun.spawn(command, { env, stdio: ['ignore', 'ignore', 'ignore'] });
  return {
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await child.exited;
    },
  };
}

/** Three sentinels that promote the replica of this Redis when two of them miss it. */
async function startSentinels(primary: Redis): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const first = await freePorts(3);
  for (const port of [first, first + 1, first + 2]) {
    const file = `${primary.folder}/sentinel-${port}.conf`;
    const lines = [
      `port ${port}`,
      `sentinel monitor music 127.0.0.1 ${primary.port} 2`,
      'sentinel down-after-milliseconds music 2000',
      'sentinel failover-timeout music 10000',
    ];
    await Bun.write(file, lines.join('\n'));
    stack.use(run([REDIS_SERVER.name, file, '--sentinel']));
  }
  const knowsAll = async () => {
    using sentinel = new RedisAdmin(`redis://127.0.0.1:${first}`);
    const info = String(await sentinel.send('INFO', ['sentinel']).catch(() => ''));
    return info.includes('slaves=1,sentinels=3');
  };
  await eventually(knowsAll, 'the sentinels to know each other');
  return stack.move();
}

/** Two Redis servers behind HAProxy, and two gateways. */
async function start(isReplicated: boolean) {
  await using stack = new AsyncDisposableStack();
  const a = stack.use(await startRedis());
  const replica = isReplicated ? ['--replicaof', '127.0.0.1', String(a.port)] : [];
  const b = stack.use(await startRedis(...replica));
  if (isReplicated) stack.use(await startSentinels(a));
  const port = await freePorts(1);
  const address = `127.0.0.1:${port}`;
  const servers = { REDIS_A: `127.0.0.1:${a.port}`, REDIS_B: `127.0.0.1:${b.port}` };
  stack.use(run(['haproxy', '-db', '-f', CONFIGURATION], { REDIS_LISTEN: address, ...servers }));
  const url = `redis://${address}`;
  const ask = async (command: string, ...values: string[]): Promise<unknown> => {
    using client = new RedisAdmin(url);
    return await client.send(command, values).catch(() => undefined);
  };
  await eventually(() => ask('PING'), 'HAProxy to reach Redis');
  const upstream = stack.use(new SharedUpstream());
  const rotation = new Rotation(upstream);
  const sent = new Map<string, number>();
  upstream.on(REFRESH, (received) => {
    const { refresh_token } = JSON.parse(received.body);
    sent.set(refresh_token, (sent.get(refresh_token) ?? 0) + 1);
    return rotation.refresh(received);
  });
  const settings = { UPSTREAM_URL: upstream.upstreamUrl, REDIS_URL: url };
  const gateway = async () => stack.use(await startGatewayProcess(settings));
  const gateways = [await gateway(), await gateway()] as const;
  const said = (text: string) => gateways.every((each) => each.said(text));
  const started = stack.move();
  const dispose = () => started.disposeAsync();
  return { a, b, ask, sent, gateways, said, [Symbol.asyncDispose]: dispose };
}

type World = Awaited<ReturnType<typeof start>>;

/** Renews an access token all the time, always with two requests at once, until `isOver`. Returns the statuses. */
async function visit({ gateways }: World, name: string, both: boolean, isOver: () => boolean) {
  const statuses: number[] = [];
  let token = `${name}-1`;
  while (!isOver()) {
    const ask = async ({ url }: { readonly url: string }) =>
      request(`${url}/api/auth/session`, { cookie: `svc_music_refresh=${token}` });
    const responses = await Promise.all([ask(gateways[0]), ask(gateways[both ? 1 : 0])]);
    statuses.push(...responses.map(({ status }) => status));
    const renewed = responses.find(({ status }) => status === 200);
    if (!renewed) break;
    token = storedTokens(renewed)['svc_music_refresh'] ?? '';
    await Bun.sleep(50);
  }
  return statuses;
}

async function visitAll(world: World, isOver: () => boolean) {
  const names = Array.from({ length: USERS }, (_, index) => `user${index}`);
  const [scattered, kept] = [true, false].map((both) =>
    Promise.all(names.map((name) => visit(world, (both ? 'scattered-' : 'kept-') + name, both, isOver))),
  );
  return { scattered: (await scattered)?.flat() ?? [], kept: (await kept)?.flat() ?? [] };
}

const WAYS = [
  { way: 'that know nothing of each other', isReplicated: false },
  { way: 'of which three sentinels promote the replica', isReplicated: true },
];

describeWith([REDIS_SERVER, program('haproxy')], 'deploy/redis/haproxy.cfg', () => {
  it.each(WAYS)('gives the gateways the other one of two Redis servers $way', async ({ isReplicated }) => {
    await using world = await start(isReplicated);
    const { a, ask, sent, said, gateways } = world;
    let isOver = false;
    const visits = visitAll(world, () => isOver);
    await using _ = {
      async [Symbol.asyncDispose]() {
        isOver = true;
        await visits;
      },
    };
    await eventually(() => sent.size > 100, 'the refreshes of a while');
    const spentTwice = () => [...sent.values()].filter((times) => times > 1).length;
    if (!said('Redis cannot be used')) expect(spentTwice()).toBe(0);
    const [killedAt, before] = [performance.now(), sent.size];
    await a.stop();
    await eventually(() => said('Redis can be used again'), 'both gateways to have Redis again');
    const [awayMs, during, twice] = [performance.now() - killedAt, sent.size - before, spentTwice()];
    // The first one is back and takes itself for the primary.
    expect(await ask('SET', 'mark', 'here')).toBe('OK');
    await a.start();
    // HAProxy has looked at it several times by then.
    await Bun.sleep(2000);
    for (let index = 0; index < 5; index++) expect(await ask('GET', 'mark')).toBe('here');
    isOver = true;
    const { scattered, kept } = await visits;
    const refused = scattered.filter((status) => status !== 200).length;
    console.log(
      `${isReplicated ? 'sentinels' : 'spare'}: refreshes were shared again after ${Math.round(awayMs)} ms; ` +
        `${during} refreshes meanwhile, ${twice} tokens sent twice; ${refused} of ${scattered.length} responses ` +
        `refused to users whose requests go to both gateways, ${kept.filter((status) => status !== 200).length} ` +
        `of ${kept.length} to the others`,
    );
    expect(new Set(kept)).toEqual(new Set([200]));
    // On a busy machine they may have missed Redis once more.
    if (gateways.every((each) => each.said('Redis cannot be used') === 1)) expect(spentTwice()).toBe(twice);
    for (const token of sent.keys()) if (token.startsWith('kept-')) expect(sent.get(token)).toBe(1);
  });
});
