import { expect, it } from 'bun:test';
import { createGatewayClient } from '../../../src/client/gateway-client.ts';
import { wavSize } from '../../../src/demo/sandbox/audio/wav.ts';
import { receive } from '../../client/page/gateway-stub.ts';
import { fetchWith } from '../../client/page/page-fetch.ts';
import { describeWith, LINUX, program } from '../../support/requirements.ts';
import { ORDER, signIn, startTestSandbox } from '../../support/sandbox-account.ts';
import { startWorld } from '../../support/world.ts';
import { prepareNginx, startTlsProxy } from './tls-proxies.ts';
import { openUpstreamGate } from './upstream-gate.ts';

describeWith([program('nginx'), LINUX], 'a generation that is silent for longer than nginx waits', () => {
  // With the statuses of other proxies, which a page can read: client/page/real-gateway.
  it('is heard in the end, and is paid for once', async () => {
    const sandbox = await startTestSandbox({ startingBalance: 100, accessTokenSeconds: 600 });
    await using _sandbox = { [Symbol.asyncDispose]: () => sandbox.stop() };
    await using gate = openUpstreamGate(sandbox.upstream.url);
    await using world = startWorld({ UPSTREAM_URL: `http://127.0.0.1:${gate.port}` });
    const hasty = { 'proxy_read_timeout 300s': 'proxy_read_timeout 600ms' };
    await using proxy = await startTlsProxy(prepareNginx, world.port, hasty);
    let silence: Promise<void> | undefined;
    gate.replace('POST /v1/music', async (forward) => {
      const response = await forward();
      silence ??= Bun.sleep(900);
      await silence;
      return response;
    });
    const { access_token } = await signIn(sandbox, 'Ada');
    const fetch = fetchWith(`svc_music_access=${access_token}`, { ca: proxy.certificate });
    const client = createGatewayClient({ baseUrl: `https://127.0.0.1:${proxy.port}`, fetch });
    const { audio, states } = await receive(client, {}, ORDER);
    expect(states.join()).toBe('waiting,recovering,arriving,complete');
    expect(audio).toHaveLength(wavSize(ORDER.music_length_ms));
    expect(gate.idempotencyKeys.length).toBeGreaterThan(1);
    expect(new Set(gate.idempotencyKeys).size).toBe(1);
    expect(sandbox.upstream.counts().generations).toBe(1);
    expect(await client.upstreamData('/v1/billing/balance')).toMatchObject({ balance: 97 });
  });
});
