import { describe, expect, it } from 'bun:test';
import { createGatewayClient } from '../../../src/client/gateway-client.ts';
import { type DemoWorld, startDemoWorld } from '../../browser/demo-world.ts';
import { receive } from './gateway-stub.ts';
import { ONCE, ORDER, sha256, TRACK_BYTES, undisturbedHash } from './recovery-world.ts';

const MUSIC = 'POST /v1/music';
const BALANCE = 100;

async function signedInClient(world: DemoWorld) {
  const cookies = await world.signIn('Ada');
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
  return createGatewayClient({
    baseUrl: world.gatewayUrl,
    fetch(url, init) {
      const headers = { ...Object.fromEntries(new Headers(init.headers)), origin: world.studioUrl, cookie };
      // A connection that is kept alive would make it a matter of luck which request meets a break.
      return fetch(url, { ...init, headers, keepalive: false });
    },
  });
}

describe('a track whose connection breaks before the headers, and whose gateway is killed in its middle,', () => {
  it('is whole, and is paid for once', async () => {
    await using world = await startDemoWorld({ isGatewayProcess: true, startingBalance: BALANCE });
    const client = await signedInClient(world);
    world.gate.replace(MUSIC, async (forward) => {
      await forward();
      half = world.gate.holdAudio(TRACK_BYTES / 2);
      world.network.break();
      return new Response(null, { status: 500 });
    });
    let half: ReturnType<typeof world.gate.holdAudio> | undefined;
    let restart: Promise<void> | undefined;
    const onProgress = ({ bytes }: { bytes: number }) => {
      if (bytes < TRACK_BYTES / 2) return;
      restart ??= world.gateway.restart().then(() => half?.release());
    };
    const { audio, states } = await receive(client, { onProgress }, ORDER);
    await restart;
    expect(states.join()).toBe('waiting,recovering,arriving,recovering,arriving,complete');
    expect(sha256(audio)).toBe(undisturbedHash());
    expect(world.gate.idempotencyKeys).toHaveLength(2);
    expect(new Set(world.gate.idempotencyKeys).size).toBe(1);
    const { balance } = Object(await client.upstreamData('/v1/billing/balance'));
    const creations = world.upstream.counts().generations;
    expect({ creations, credits: BALANCE - balance }).toEqual(ONCE);
  });
});
