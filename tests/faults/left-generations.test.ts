import { afterAll, beforeAll, expect, it } from 'bun:test';
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts';
import { describeWith, LINUX } from '../support/requirements.ts';
import { ACCESS_ONLY, request } from '../support/world.ts';

const GENERATIONS = 8;
const TRACK_PIECES = 800;
const PIECE = new Uint8Array(64 * 1024);
/** How much the gateway may grow: a tenth of what it reads and throws away. */
const MOST_MB = (GENERATIONS * TRACK_PIECES * PIECE.byteLength) / 10 / 1e6;

describeWith([LINUX], 'generations that their clients have left', () => {
  let gateway: GatewayProcess;
  let whole = 0;
  const areWhole = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();

  /** Sends a piece, and the rest of a track when all clients have gone. */
  async function* track() {
    yield PIECE;
    await goOn.promise;
    for (let piece = 1; piece < TRACK_PIECES; piece++) yield PIECE;
    if (++whole === GENERATIONS) areWhole.resolve();
  }
  const upstream = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    fetch: () => new Response(track()),
  });

  beforeAll(async () => {
    gateway = await startGatewayProcess({ UPSTREAM_URL: `http://127.0.0.1:${upstream.port}` });
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    await upstream.stop(true);
  });

  it('are read to their end, and what is thrown away takes no memory', async () => {
    const client = new AbortController();
    for (let ordered = 0; ordered < GENERATIONS; ordered++) {
      const response = await request(`${gateway.url}/api/music/generate`, {
        cookie: ACCESS_ONLY,
        json: { model: 'm', prompt: 'p', music_length_ms: 3000 },
        signal: client.signal,
      });
      await response.body?.getReader().read();
    }
    client.abort();
    await request(`${gateway.url}/api/health`, {});
    const before = await peakMegabytes(gateway.pid);
    goOn.resolve();
    await areWhole.promise;
    expect((await peakMegabytes(gateway.pid)) - before).toBeLessThan(MOST_MB);
    expect(gateway.errors()).toBe('');
  });
});

/** @see proc(5), `/proc/pid/status` */
async function peakMegabytes(pid: number): Promise<number> {
  const status = await Bun.file(`/proc/${pid}/status`).text();
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) / 1000;
}
