import { expect, it } from 'bun:test';
import { startGatewayProcess } from '../support/gateway-process.ts';
import { memoryOf } from '../support/process-status.ts';
import { describeWith, LINUX } from '../support/requirements.ts';
import { ACCESS_ONLY, request } from '../support/world.ts';

const GENERATIONS = 8;
const TRACK_PIECES = 800;
const PIECE = new Uint8Array(64 * 1024);
/** How much the gateway may grow: a tenth of what it reads and throws away. */
const MOST_MB = (GENERATIONS * TRACK_PIECES * PIECE.byteLength) / 10 / 1024 ** 2;

describeWith([LINUX], 'generations that their clients have left', () => {
  it('are read to their end, and what is thrown away takes no memory', async () => {
    const areWhole = Promise.withResolvers<void>();
    const haveLeft = Promise.withResolvers<void>();
    let whole = 0;
    async function* track() {
      yield PIECE;
      await haveLeft.promise;
      for (let piece = 1; piece < TRACK_PIECES; piece++) yield PIECE;
      if (++whole === GENERATIONS) areWhole.resolve();
    }
    await using upstream = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      idleTimeout: 0,
      fetch: () => new Response(track()),
    });
    await using gateway = await startGatewayProcess({ UPSTREAM_URL: `http://127.0.0.1:${upstream.port}` });
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
    const { peakMb } = await memoryOf(gateway.pid);
    haveLeft.resolve();
    await areWhole.promise;
    expect((await memoryOf(gateway.pid)).peakMb - peakMb).toBeLessThan(MOST_MB);
    expect(gateway.errors()).toBe('');
  });
});
