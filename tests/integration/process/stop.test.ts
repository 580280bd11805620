import { describe, expect, it } from 'bun:test';
import { eventually } from '../../support/eventually.ts';
import { isUp } from '../../support/is-up.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { FIRST_PIECE, startTrackUpstream } from '../../support/track-upstream.ts';
import { ORIGIN, SIGNED_IN } from '../../support/world.ts';
import { type Started, start } from './bun-run-start.ts';

const HEADERS = { origin: ORIGIN, cookie: SIGNED_IN, 'content-type': 'application/json' };
const GENERATION = { method: 'POST', body: '{"model":"m","prompt":"p","music_length_ms":3000}' };
/** Far more than a process takes to exit that does not wait for its calls. */
const EXIT_MS = 500;

function logged(level: string, msg: string) {
  return { level, time: expect.any(String), msg };
}

/** A gateway, and its upstream, which is stopped with it. */
async function startBehind(settings: Record<string, string> = {}) {
  const upstream = new ScriptedUpstream();
  const gateway = await start({ ...settings, UPSTREAM_URL: upstream.upstreamUrl });
  const dispose = async () => {
    await gateway[Symbol.asyncDispose]();
    await upstream.stop();
  };
  return { upstream, gateway, [Symbol.asyncDispose]: dispose };
}

/** A gateway that streams a body without an end. */
async function startStreaming(settings: Record<string, string> = {}) {
  const behind = await startBehind(settings);
  const endless = () => new ReadableStream({ start: (body) => body.enqueue(new Uint8Array(10)) });
  behind.upstream.on('GET /v1/endless', () => new Response(endless()));
  const streaming = await fetch(`${behind.gateway.url}/api/upstream/v1/endless`, { headers: HEADERS });
  return Object.assign(behind, { streaming });
}

/** @param pid by default of the process alone; negative, of its group */
async function stop({ child, url }: Started, signal: NodeJS.Signals = 'SIGTERM', pid = child.pid) {
  process.kill(pid, signal);
  await eventually(async () => !(await isUp(url)), 'the gateway to refuse connections');
}

// Not concurrent: then Bun sometimes loses the end of the output of a process.
describe('a gateway that is stopped', () => {
  // systemd and a terminal signal the whole group, `bun run` and the gateway; others signal the first process alone.
  it.each([
    ['SIGTERM', 'the process', 1],
    ['SIGINT', 'the process', 1],
    ['SIGTERM', 'its group', -1],
    ['SIGINT', 'its group', -1],
  ] as const)(
    'by %s to %s refuses connections, finishes its requests and exits with 0',
    async (signal, _, sign) => {
      await using behind = await startBehind();
      const { upstream, gateway } = behind;
      const release = Promise.withResolvers<void>();
      upstream.on('GET /v1/me', () => release.promise.then(() => Response.json({ name: 'Ada' })));
      const session = fetch(`${gateway.url}/api/auth/session`, { headers: HEADERS });
      await upstream.arrived('GET /v1/me');
      await stop(gateway, signal, sign * gateway.child.pid);
      release.resolve();
      expect(await (await session).json()).toEqual({ name: 'Ada' });
      expect(await gateway.child.exited).toBe(0);
      await gateway.ended;
      const [request, stopped] = gateway.lines.slice(-2);
      expect(request).toMatchObject({ method: 'GET', route: '/api/auth/session', status: 200 });
      expect(stopped).toEqual(logged('info', 'stopped; every request is finished'));
    },
  );

  it.each([
    ['refresh', '/api/auth/session', {}, 'POST /v1/auth/refresh'],
    ['generation', '/api/music/generate', GENERATION, 'POST /v1/music'],
  ])('finishes a %s whose client has disconnected, before it exits', async (_, path, init, call) => {
    await using behind = await startBehind();
    const { upstream, gateway } = behind;
    const response = Promise.withResolvers<Response>();
    upstream.on('GET /v1/me', () => new Response('', { status: 401 })).on(call, () => response.promise);
    const client = new AbortController();
    const gone = fetch(gateway.url + path, { ...init, headers: HEADERS, signal: client.signal });
    await upstream.arrived(call);
    client.abort();
    await expect(gone).rejects.toThrow();
    await stop(gateway);
    const { signal } = upstream.last(call);
    const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
    await Promise.race([aborted, Bun.sleep(EXIT_MS)]);
    expect(signal.aborted).toBe(false);
    response.resolve(Response.json({ access_token: 'a', refresh_token: 'r' }));
    expect(await gateway.child.exited).toBe(0);
  });

  it('reads a generation to its end whose client disconnected in the middle, before it exits', async () => {
    await using track = await startTrackUpstream();
    await using gateway = await start({ UPSTREAM_URL: track.url });
    const client = new AbortController();
    const options = { ...GENERATION, headers: HEADERS, signal: client.signal };
    const ordered = fetch(`${gateway.url}/api/music/generate`, options);
    await track.arrived;
    track.sendHead();
    track.send(FIRST_PIECE);
    await (await ordered).body?.getReader().read();
    client.abort();
    await stop(gateway);
    const closed = track.closed.then(() => 'closed');
    expect(await Promise.race([closed, Bun.sleep(EXIT_MS)])).toBeUndefined();
    expect(await track.finish()).toBe(true);
    expect(await gateway.child.exited).toBe(0);
  });

  it('cuts off what takes more than the longest timeout', async () => {
    const names = ['SIGN_IN', 'READ', 'LOGOUT', 'STREAM'];
    const short = Object.fromEntries(names.map((name) => [`TIMEOUT_${name}_MS`, '1000']));
    await using behind = await startStreaming(short);
    const { gateway, streaming } = behind;
    gateway.child.kill('SIGTERM');
    expect(await gateway.child.exited).toBe(0);
    await expect(streaming.arrayBuffer()).rejects.toThrow();
    await gateway.ended;
    expect(gateway.lines.slice(-2)).toEqual([
      logged('info', 'SIGTERM: no more connections; 1 requests are in flight'),
      logged('warn', 'stopped; 1 requests took too long and are cut off'),
    ]);
  });

  it('exits at once on a second signal', async () => {
    await using behind = await startStreaming();
    const { gateway, streaming } = behind;
    gateway.child.kill('SIGTERM');
    const first = JSON.stringify('SIGTERM: no more connections; 1 requests are in flight');
    await eventually(() => JSON.stringify(gateway.lines).includes(first), 'the line of the first signal');
    // Within a second, it would count as the first.
    await Bun.sleep(1100);
    gateway.child.kill('SIGTERM');
    expect(await gateway.child.exited).toBe(1);
    await expect(streaming.arrayBuffer()).rejects.toThrow();
  });
});
