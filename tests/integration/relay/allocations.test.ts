import { afterAll, beforeAll, expect, it } from 'bun:test';
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts';
import { memoryOf } from '../../support/process-status.ts';
import { describeWith, LINUX } from '../../support/requirements.ts';
import { ORIGIN } from '../../support/world.ts';

/** 1.8 KB, as a catalogue of models. */
const CATALOGUE = JSON.stringify({
  data: Array.from({ length: 18 }, (_, at) => ({ id: `model-${at}`, name: 'x'.repeat(60) })),
});
const WARM_UP = 1500;
const REQUESTS = 1500;

/**
 * Bytes that one request may take, a quarter above what it took when this was written (in brackets). With the garbage
 * collector off, everything that is made for a request stays, so that this counts work and not time: it is the same on a
 * busy machine, to a few per cent. When a figure has to be raised, `bun run bench` should say that it was worth it.
 */
const BOUNDS = [
  ['models', '/api/music/models', 21_000], // 17,900, of which 5,000 are the request's line in the log
  ['session check', '/api/auth/session', 20_000], // 17,500
  ['proxied call', '/api/upstream/v1/models', 22_000], // 18,800
  ['refused origin', '/api/music/models', 11_700], // 9,300
] as const;

describeWith([LINUX], 'what a request allocates', () => {
  const upstream = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => new Response(CATALOGUE, { headers: { 'content-type': 'application/json' } }),
  });
  let gateway: GatewayProcess;

  beforeAll(async () => {
    gateway = await startGatewayProcess({
      UPSTREAM_URL: `http://127.0.0.1:${upstream.port}`,
      BUN_JSC_useGC: '0',
    });
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    await upstream.stop(true);
  });

  async function send(path: string, origin: string, times: number): Promise<number> {
    let status = 0;
    for (let sent = 0; sent < times; sent++) {
      const response = await fetch(gateway.url + path, {
        headers: { origin, cookie: 'svc_music_access=a; svc_music_refresh=r' },
      });
      status = response.status;
      await response.arrayBuffer();
    }
    return status;
  }

  it.each(BOUNDS)('stays within bounds: %s', async (name, path, bound) => {
    const origin = name === 'refused origin' ? 'http://evil.test' : ORIGIN;
    expect(await send(path, origin, WARM_UP)).toBe(name === 'refused origin' ? 403 : 200);
    const before = await memoryOf(gateway.pid);
    await send(path, origin, REQUESTS);
    const after = await memoryOf(gateway.pid);
    const each = ((after.rssMb - before.rssMb) * 1024 * 1024) / REQUESTS;
    console.log(`${name}: ${Math.round(each)} bytes a request`);
    expect(each).toBeLessThan(bound);
  });
});
