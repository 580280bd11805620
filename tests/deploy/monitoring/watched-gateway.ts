/** A gateway that Prometheus watches, with the traffic that gives each of its metrics something to count. */

import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import type { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { request, startWorld } from '../../support/world.ts';

const TRACK = new Uint8Array(300_000);

/** Returns the address of its metrics, which change until it is disposed. */
export function startWatchedGateway() {
  const metrics = new Metrics();
  metrics.droppedSpans();
  const server = metrics.serve({ port: 0, hostname: '127.0.0.1' });
  const settings = { TIMEOUT_SIGN_IN_MS: '1000', REDIS_URL: 'redis://127.0.0.1:1' };
  const world = startWorld(settings, metrics);
  script(world.upstream);
  let isOver = false;
  const traffic = (async () => {
    for (let round = 0; !isOver; round++) await everythingOnce(world.url, round);
  })();
  return {
    metrics: server.url.host,
    async [Symbol.asyncDispose]() {
      isOver = true;
      await traffic;
      await world[Symbol.asyncDispose]();
      await server.stop(true);
    },
  };
}

/** The token, the code or the path of a call decides what the upstream does with it. */
function script(upstream: ScriptedUpstream): void {
  const pair = () => Response.json({ access_token: 'access', refresh_token: crypto.randomUUID() });
  async function* broken() {
    yield TRACK;
    // Bun would print a reason.
    await Promise.reject();
  }
  upstream
    .on('POST /oauth/token', ({ body }) =>
      Response.json({ access_token: 'identity' }, { status: body.includes('refused') ? 400 : 200 }),
    )
    .on('POST /v1/auth/idp', pair)
    .on('POST /v1/auth/refresh', ({ body }) => {
      if (body.includes('late')) return new Promise(() => {});
      const status = Number(/"(\d+)-/.exec(body)?.[1]);
      return status === 200 ? pair() : new Response('', { status });
    })
    .on('GET /v1/me', ({ headers }) =>
      Response.json({}, { status: headers.get('authorization') === 'Bearer expired' ? 401 : 503 }),
    )
    .on('GET /v1/library/endless', () => {
      return new Response(new ReadableStream({ start: (body) => body.enqueue(TRACK) }));
    })
    .on('GET /v1/library/broken', () => new Response(broken()));
}

/** Makes one request of each kind, one after the other. */
async function everythingOnce(url: string, round: number): Promise<void> {
  for (const code of ['good', 'refused'])
    await request(`${url}/api/auth/idp`, { json: { code, code_verifier: 'v'.repeat(43) } });
  for (const outcome of ['200', '401', '503', 'late']) {
    const cookie = `svc_music_access=expired; svc_music_refresh=${outcome}-${round}`;
    await request(`${url}/api/auth/session`, { cookie });
  }
  const relay = (name: string) =>
    request(`${url}/api/upstream/v1/library/${name}`, { cookie: 'svc_music_access=access' });
  await relay('broken')
    .then((response) => response.bytes())
    .catch(() => {});
  await (await relay('endless')).body?.cancel();
}
