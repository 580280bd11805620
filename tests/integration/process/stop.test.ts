import { describe, expect, it } from 'bun:test';
import { eventually } from '../../support/eventually.ts';
import { isUp } from '../../support/is-up.ts';
import { TRACK } from '../../support/routes.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { LOGOUT, ME, pair, REFRESH, reply } from '../../support/session-calls.ts';
import { ORIGIN, SIGNED_IN } from '../../support/world.ts';
import { type Started, start } from './bun-run-start.ts';

const HEADERS = { origin: ORIGIN, cookie: SIGNED_IN, 'content-type': 'application/json' };
const GENERATION = { method: 'POST', body: JSON.stringify(TRACK) };

/** @param target by default the process alone; its negative is its group */
async function stop({ pid, url }: Started, signal: NodeJS.Signals = 'SIGTERM', target = pid) {
  process.kill(target, signal);
  await eventually(async () => !(await isUp(url)), 'the gateway to refuse connections');
}

// Not concurrent: then Bun sometimes loses the end of the output of a process.
describe('a gateway that is stopped', () => {
  // systemd and a terminal signal the whole group, `bun run` and the gateway; others signal the first process alone.
  it.each([
    ['SIGTERM', 'the process', 1],
    ['SIGINT', 'its group', -1],
  ] as const)(
    'by %s to %s leaves its port to another one, finishes its requests and exits with 0',
    async (signal, _, sign) => {
      await using upstream = new ScriptedUpstream();
      await using gateway = await start({ UPSTREAM_URL: upstream.upstreamUrl });
      const release = Promise.withResolvers<void>();
      upstream.on('GET /v1/me', () => release.promise.then(() => Response.json({ name: 'Ada' })));
      const session = fetch(`${gateway.url}/api/auth/session`, { headers: HEADERS });
      await upstream.arrived('GET /v1/me');
      await stop(gateway, signal, sign * gateway.pid);
      // So an upgrade of the only instance needs to wait for no generation.
      await using next = await start({ PORT: new URL(gateway.url).port });
      expect(await isUp(next.url)).toBe(true);
      release.resolve();
      expect(await (await session).json()).toEqual({ name: 'Ada' });
      expect(await gateway.exited).toBe(0);
      expect(gateway.lines.slice(-2)).toMatchObject([
        { method: 'GET', route: '/api/auth/session', status: 200 },
        { level: 'info', msg: 'stopped; every request is finished' },
      ]);
    },
  );

  // How a generation is read to its end: relay/streaming.test.ts.
  it.each([
    ['/api/auth/session', {}, REFRESH],
    ['/api/auth/logout', { method: 'POST' }, LOGOUT],
    ['/api/music/generate', GENERATION, 'POST /v1/music'],
  ])('finishes a request for %s whose client has disconnected, before it exits', async (path, init, call) => {
    await using upstream = new ScriptedUpstream();
    await using gateway = await start({ UPSTREAM_URL: upstream.upstreamUrl });
    const response = Promise.withResolvers<Response>();
    upstream.on(ME, reply(401)).on(call, () => response.promise);
    const client = new AbortController();
    const gone = fetch(gateway.url + path, { ...init, headers: HEADERS, signal: client.signal });
    await upstream.arrived(call);
    client.abort();
    await expect(gone).rejects.toThrow();
    await stop(gateway);
    response.resolve(Response.json(pair(3)));
    expect(await gateway.exited).toBe(0);
    const served = expect.arrayContaining([expect.objectContaining({ outcome: 200 })]);
    const last = [{ route: path, upstream: served }, { msg: 'stopped; every request is finished' }];
    expect(gateway.lines.slice(-2)).toMatchObject(last);
  });

  const SHORT = Object.fromEntries(
    ['SIGN_IN', 'READ', 'LOGOUT', 'STREAM'].map((name) => [`TIMEOUT_${name}_MS`, '1000']),
  );
  it.each([
    ['after the longest timeout', SHORT, 0],
    ['at once on a second signal', {}, 1],
  ])('cuts off bodies without an end %s, also of a generation', async (_, settings, status) => {
    await using upstream = new ScriptedUpstream();
    await using gateway = await start({ ...settings, UPSTREAM_URL: upstream.upstreamUrl });
    const endless = () => new ReadableStream({ start: (body) => body.enqueue(new Uint8Array(10)) });
    const respond = () => new Response(endless());
    upstream.on('GET /v1/endless', respond).on('POST /v1/music', respond);
    const streaming = await fetch(`${gateway.url}/api/upstream/v1/endless`, { headers: HEADERS });
    const generating = await fetch(`${gateway.url}/api/music/generate`, { ...GENERATION, headers: HEADERS });
    gateway.kill('SIGTERM');
    const first = { level: 'info', msg: 'SIGTERM: no more connections; 2 requests are in flight' };
    await eventually(() => JSON.stringify(gateway.lines).includes(first.msg), 'the line of the first signal');
    // Within a second, it counts as the first.
    const hasExited = () => {
      gateway.kill('SIGTERM');
      return Promise.race([gateway.exited, Bun.sleep(0)]);
    };
    if (status) await eventually(hasExited, 'a later signal to count');
    expect(await gateway.exited).toBe(status);
    for (const response of [streaming, generating]) await expect(response.arrayBuffer()).rejects.toThrow();
    const last = { level: 'warn', msg: 'stopped; 2 requests took too long and are cut off' };
    const cutOff = ['/api/upstream/*', '/api/music/generate'].map((route) => ({ route, cutOff: 'shutdown' }));
    expect(gateway.lines.slice(status ? -1 : -4)).toMatchObject(status ? [first] : [first, last, ...cutOff]);
  });
});
