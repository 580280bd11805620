import { afterEach, describe, expect, it } from 'bun:test';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import type { Subprocess } from 'bun';
import { settingNames } from '../../src/gateway/settings/settings.ts';
import { clientKeyPair } from '../support/client-keys.ts';
import { freePorts } from '../support/free-ports.ts';
import { isUp } from '../support/is-up.ts';
import { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { FIRST_PIECE, startTrackUpstream } from '../support/track-upstream.ts';
import { ORIGIN, SIGNED_IN } from '../support/world.ts';

const SETTINGS = {
  PORT: '0',
  HOST: '127.0.0.1',
  UPSTREAM_URL: 'http://127.0.0.1:1',
  IDP_URL: 'http://127.0.0.1:1',
  IDP_CLIENT_ID: 'studio',
  IDP_REDIRECT_URI: `${ORIGIN}/callback`,
  ALLOWED_ORIGINS: ORIGIN,
};

let started: Subprocess<'ignore', 'pipe', 'pipe'>[] = [];
afterEach(async () => {
  // Not SIGKILL: it would end `bun run` and leave the gateway that it has started.
  for (const process of started) process.kill('SIGTERM');
  await Promise.all(started.map(({ exited }) => exited));
  started = [];
});

function start(settings: Record<string, string>) {
  const child = Bun.spawn([process.execPath, 'run', '--silent', 'start'], {
    cwd: new URL('../..', import.meta.url).pathname,
    // Empty counts as not set: so a developer's own .env does not get in.
    env: {
      ...Object.fromEntries(Array.from(settingNames(), (name) => [name, ''])),
      PATH: process.env['PATH'],
      ...settings,
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    detached: true,
  });
  started.push(child);
  return child;
}

/** The line that says where the gateway listens, the address in it, and all lines, also those to come. */
async function listening(child: ReturnType<typeof start>) {
  const log = createInterface({ input: Readable.fromWeb(child.stdout) });
  const { promise, resolve } = Promise.withResolvers<{
    line: string;
    url: string;
    lines: string[];
    ended: Promise<void>;
  }>();
  const lines: string[] = [];
  const end = Promise.withResolvers<void>();
  const ended = end.promise;
  // To the end: a log that nobody reads any more is a test of its own.
  log.on('line', (line) => {
    const url = /listens on (http:\/\/[\w.:]+)/.exec(line)?.[1];
    lines.push(line);
    if (url) resolve({ line, url, lines, ended });
  });
  log.on('close', () => {
    end.resolve();
    resolve({ line: '', url: '', lines, ended });
  });
  return promise;
}

/** A line of the log that is not about a request, outside production as in it. */
function logged(level: string, msg: unknown) {
  return { level, time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/), msg };
}

describe('bun run start', () => {
  it('says in one line where it listens and for which origins', async () => {
    const { line, url } = await listening(start(SETTINGS));
    expect(JSON.parse(line)).toEqual(
      logged('info', `music-gateway listens on ${url} for http://studio.test`),
    );
    expect((await fetch(`${url}/api/health`)).status).toBe(200);
  });

  it('prints every problem of a bad configuration at once, without a stack trace, and exits with 1', async () => {
    const child = start({ PORT: 'none', ALLOWED_ORIGINS: 'http://studio.test/', TIMEOUT_READ_MS: '-1' });
    expect(await child.exited).toBe(1);
    expect(await child.stdout.text()).toBe('');
    const lines = (await child.stderr.text()).split('\n').filter((line) => line.startsWith('error: '));
    expect(lines.map((line) => /error: (\w+)/.exec(line)?.[1])).toEqual([
      'PORT',
      'UPSTREAM_URL',
      'IDP_URL',
      'IDP_CLIENT_ID',
      'IDP_REDIRECT_URI',
      'ALLOWED_ORIGINS',
      'TIMEOUT_READ_MS',
    ]);
  });

  it('quotes neither the client secret nor the client key when there is a problem with them', async () => {
    const { privateJwk, secrets } = clientKeyPair('ES256');
    const child = start({ ...SETTINGS, IDP_CLIENT_SECRET: 's3cr3t', IDP_CLIENT_KEY: `${privateJwk}}` });
    expect(await child.exited).toBe(1);
    const errors = await child.stderr.text();
    expect(errors).toContain('error: IDP_CLIENT_SECRET and IDP_CLIENT_KEY must not both be set\n');
    expect(errors).toContain('error: IDP_CLIENT_KEY must be a private key');
    for (const secret of ['s3cr3t', ...secrets]) expect(errors).not.toContain(secret);
  });

  it('says what a cookie prefix needs', async () => {
    const child = start({ ...SETTINGS, COOKIE_PREFIX: '__Host-', COOKIE_SAME_SITE: 'none' });
    expect(await child.exited).toBe(1);
    expect(await child.stderr.text()).toBe(
      'error: COOKIE_PREFIX needs Secure cookies: set NODE_ENV=production or COOKIE_SECURE=true\n' +
        'error: COOKIE_SAME_SITE must be lax or strict, not "none"\n',
    );
  });

  it('does not start in production when certificates are not checked', async () => {
    const unchecked = start({ ...SETTINGS, NODE_ENV: 'production', NODE_TLS_REJECT_UNAUTHORIZED: '0' });
    expect(await unchecked.exited).toBe(1);
    expect(await unchecked.stdout.text()).toBe('');
    expect(await unchecked.stderr.text()).toContain('error: NODE_TLS_REJECT_UNAUTHORIZED is 0: certificates');
  });

  it('warns outside production that certificates are not checked', async () => {
    const { lines } = await listening(start({ ...SETTINGS, NODE_TLS_REJECT_UNAUTHORIZED: '0' }));
    expect(JSON.parse(String(lines[0]))).toEqual(
      logged('warn', 'NODE_TLS_REJECT_UNAUTHORIZED is 0: certificates of other servers are not checked'),
    );
  });

  it('names a port that is taken instead of sharing it', async () => {
    const { url } = await listening(start(SETTINGS));
    const second = start({ ...SETTINGS, PORT: new URL(url).port });
    expect(await second.exited).toBe(1);
    expect(await second.stderr.text()).toContain(`error: port ${new URL(url).port} is taken (PORT)\n`);
  });

  it('names a port for metrics that is taken', async () => {
    const port = String(await freePorts(1));
    await listening(start({ ...SETTINGS, METRICS_PORT: port }));
    const second = start({ ...SETTINGS, METRICS_PORT: port });
    expect(await second.exited).toBe(1);
    expect(await second.stderr.text()).toContain(`error: port ${port} is taken (METRICS_PORT)\n`);
  });

  it('serves metrics on METRICS_HOST alone, which is loopback wherever HOST is', async () => {
    const port = String(await freePorts(2));
    await listening(start({ ...SETTINGS, HOST: '0.0.0.0', METRICS_PORT: port }));
    expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status).toBe(200);
    await expect(fetch(`http://127.0.0.2:${port}/metrics`)).rejects.toThrow();
    const other = String(Number(port) + 1);
    await listening(start({ ...SETTINGS, METRICS_PORT: other, METRICS_HOST: '0.0.0.0' }));
    expect((await fetch(`http://127.0.0.2:${other}/metrics`)).status).toBe(200);
  });

  it.each([
    ['METRICS_', '192.0.2.1'],
    ['METRICS_', 'metrics.invalid'],
    ['METRICS_', 'http://127.0.0.1'],
    ['', 'gateway.invalid'],
  ])('names a %sHOST on which it cannot listen: %s', async (prefix, host) => {
    const port = String(await freePorts(1));
    const child = start({ ...SETTINGS, [`${prefix}PORT`]: port, [`${prefix}HOST`]: host });
    expect(await child.exited).toBe(1);
    expect(await child.stderr.text()).toMatch(
      new RegExp(
        `^error: cannot listen on ${host}:${port} \\(E\\w+, ${prefix}HOST and ${prefix}PORT\\)\\n$`,
        'm',
      ),
    );
  });

  it('warns of a setting that it does not know but that resembles one', async () => {
    const child = start({ ...SETTINGS, ALLOWED_ORIGIN: ORIGIN });
    const { lines } = await listening(child);
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      logged('warn', 'ALLOWED_ORIGIN is not a setting of the gateway; did you mean ALLOWED_ORIGINS?'),
      logged('info', expect.stringContaining('listens on')),
    ]);
  });

  it('holds more calls than the 256 that Bun allows by default', async () => {
    const upstream = new ScriptedUpstream();
    const release = Promise.withResolvers<void>();
    upstream.on('POST /v1/music', () => release.promise.then(() => new Response('audio')));
    upstream.on('GET /v1/me', () => Response.json({ name: 'Ada' }));
    const { url } = await listening(
      start({ ...SETTINGS, UPSTREAM_URL: upstream.upstreamUrl, MAX_IN_FLIGHT_PER_SESSION: '0' }),
    );
    const headers = { origin: ORIGIN, cookie: SIGNED_IN, 'content-type': 'application/json' };
    const body = JSON.stringify({ model: 'm', prompt: 'p', music_length_ms: 3000 });
    const generate = () =>
      fetch(`${url}/api/music/generate`, { method: 'POST', headers, body, keepalive: false });
    const generations = Array.from({ length: 250 }, generate);
    // This process has the default limit of fetches, so the rest comes from another one.
    const more = Bun.spawn(
      [process.execPath, '-e', MORE_GENERATIONS, url, JSON.stringify({ headers, body })],
      {
        stdout: 'pipe',
        stderr: 'inherit',
      },
    );
    await upstream.arrived('POST /v1/music', 400);
    const session = await fetch(`${url}/api/auth/session`, { headers });
    expect(await session.json()).toEqual({ name: 'Ada' });
    release.resolve();
    for (const response of await Promise.all(generations)) expect(await response.text()).toBe('audio');
    expect(await more.stdout.text()).toBe('audio'.repeat(150));
    await upstream.stop();
  });

  // systemd and a terminal signal the whole group, `bun run` and the gateway; others the first process alone.
  it.each([
    ['SIGTERM', 'the process', 1],
    ['SIGINT', 'the process', 1],
    ['SIGTERM', 'its group', -1],
    ['SIGINT', 'its group', -1],
  ] as const)(
    'on %s to %s takes no more connections, finishes what runs and exits with 0',
    async (signal, _, sign) => {
      const upstream = new ScriptedUpstream();
      const release = Promise.withResolvers<void>();
      upstream.on('GET /v1/me', () => release.promise.then(() => Response.json({ name: 'Ada' })));
      const child = start({ ...SETTINGS, UPSTREAM_URL: upstream.upstreamUrl });
      const { url, lines, ended } = await listening(child);
      const session = fetch(`${url}/api/auth/session`, { headers: { origin: ORIGIN, cookie: SIGNED_IN } });
      await upstream.arrived('GET /v1/me');
      process.kill(sign * child.pid, signal);
      while (await isUp(url)) await Bun.sleep(5);
      release.resolve();
      expect(await (await session).json()).toEqual({ name: 'Ada' });
      expect(await child.exited).toBe(0);
      await ended;
      const [request, stopped] = lines.slice(-2).map((line) => JSON.parse(line));
      expect(request).toMatchObject({ method: 'GET', route: '/api/auth/session', status: 200 });
      expect(stopped).toEqual(logged('info', 'stopped; every request is finished'));
      await upstream.stop();
    },
  );

  const GENERATION = { method: 'POST', body: '{"model":"m","prompt":"p","music_length_ms":3000}' };
  it.each([
    ['a refresh', '/api/auth/session', {}, 'POST /v1/auth/refresh'],
    ['a generation', '/api/music/generate', GENERATION, 'POST /v1/music'],
  ])('finishes %s whose client has gone, before it exits', async (_, path, init, call) => {
    const upstream = new ScriptedUpstream();
    const response = Promise.withResolvers<Response>();
    upstream.on('GET /v1/me', () => new Response('', { status: 401 }));
    upstream.on(call, () => response.promise);
    const child = start({ ...SETTINGS, UPSTREAM_URL: upstream.upstreamUrl });
    const { url } = await listening(child);
    const client = new AbortController();
    const headers = { origin: ORIGIN, cookie: SIGNED_IN, 'content-type': 'application/json' };
    const gone = fetch(url + path, { ...init, headers, signal: client.signal });
    await upstream.arrived(call);
    client.abort();
    await expect(gone).rejects.toThrow();
    child.kill('SIGTERM');
    while (await isUp(url)) await Bun.sleep(5);
    // A process that did not wait would be gone at once, and its call with it.
    const { signal } = upstream.last(call);
    await Promise.race([new Promise((resolve) => signal.addEventListener('abort', resolve)), Bun.sleep(500)]);
    expect(signal.aborted).toBe(false);
    response.resolve(Response.json({ access_token: 'a', refresh_token: 'r' }));
    expect(await child.exited).toBe(0);
    await upstream.stop();
  });

  it('reads a generation to its end whose client has gone in the middle, before it exits', async () => {
    const upstream = await startTrackUpstream();
    const child = start({ ...SETTINGS, UPSTREAM_URL: upstream.url });
    const { url } = await listening(child);
    const client = new AbortController();
    const headers = { origin: ORIGIN, cookie: SIGNED_IN, 'content-type': 'application/json' };
    const ordered = fetch(`${url}/api/music/generate`, { ...GENERATION, headers, signal: client.signal });
    await upstream.arrived;
    upstream.sendHead();
    upstream.send(FIRST_PIECE);
    await (await ordered).body?.getReader().read();
    client.abort();
    child.kill('SIGTERM');
    while (await isUp(url)) await Bun.sleep(5);
    // A process that did not wait would be gone at once, and its call with it.
    expect(await Promise.race([upstream.closed.then(() => 'closed'), Bun.sleep(500)])).toBeUndefined();
    expect(await upstream.finish()).toBe(true);
    expect(await child.exited).toBe(0);
    await upstream[Symbol.asyncDispose]();
  });

  it('waits for what runs no longer than the longest timeout', async () => {
    const short = Object.fromEntries(
      ['SIGN_IN', 'READ', 'LOGOUT', 'STREAM'].map((name) => [`TIMEOUT_${name}_MS`, '400']),
    );
    const { child, upstream, streaming, lines, ended } = await startStreaming(short);
    child.kill('SIGTERM');
    expect(await child.exited).toBe(0);
    await expect(streaming.arrayBuffer()).rejects.toThrow();
    await ended;
    expect(lines.slice(-2).map((line) => JSON.parse(line))).toEqual([
      logged('info', 'SIGTERM: no more connections; 1 requests are under way'),
      logged('warn', 'stopped; 1 requests took too long and are cut off'),
    ]);
    await upstream.stop();
  });

  it('exits at once on a second signal', async () => {
    const { child, upstream, streaming } = await startStreaming({});
    child.kill('SIGTERM');
    // One that comes within a second counts as the same, so it is sent until it is heard.
    while (child.exitCode === null) {
      child.kill('SIGTERM');
      await Bun.sleep(50);
    }
    expect(child.exitCode).toBe(1);
    await expect(streaming.arrayBuffer()).rejects.toThrow();
    await upstream.stop();
  });
});

/** A gateway with one body under way that never ends. */
async function startStreaming(settings: Record<string, string>) {
  const upstream = new ScriptedUpstream();
  upstream.on(
    'GET /v1/endless',
    () => new Response(new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(10)) })),
  );
  const child = start({ ...SETTINGS, ...settings, UPSTREAM_URL: upstream.upstreamUrl });
  const { url, lines, ended } = await listening(child);
  const headers = { origin: ORIGIN, cookie: SIGNED_IN };
  return {
    child,
    upstream,
    lines,
    ended,
    streaming: await fetch(`${url}/api/upstream/v1/endless`, { headers }),
  };
}

const MORE_GENERATIONS = `
  const [url, options] = process.argv.slice(-2);
  const send = () => fetch(url + '/api/music/generate', { method: 'POST', ...JSON.parse(options) });
  const texts = await Promise.all(Array.from({ length: 150 }, () => send().then((response) => response.text())));
  process.stdout.write(texts.join(''));
`;
