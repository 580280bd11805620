import { describe, expect, it } from 'bun:test';
import { createGatewayClient } from '../../../src/client/gateway-client.ts';
import type { GenerationProgress } from '../../../src/client/generation.ts';
import { breakTwice, generateDisturbed, ONCE, onceAt, replaceContent } from './disturbed-generation.ts';
import { recorded, rejection } from './page.ts';
import { ORDER, openRecoveryWorld, TRACK_BYTES, undisturbedHash } from './recovery-world.ts';

const MUSIC = 'POST /v1/music';
/** Short enough for a test, and longer than any pause in the sandbox's audio. */
const STALL_MS = 1_500;
const RECOVERED = ['waiting', 'arriving', 'recovering', 'arriving', 'complete'];

describe('a generation whose connection breaks', () => {
  it.each([0.1, 0.5, 0.9])('is whole although the connection is cut at %d of it', async (share) => {
    await using world = await openRecoveryWorld();
    const cut = onceAt(world, share, () => world.network.break());
    const { hash, states, seen } = await generateDisturbed(world, cut);
    expect(states).toEqual(RECOVERED);
    expect(hash).toBe(undisturbedHash());
    expect(seen.at(-1)).toMatchObject({ state: 'complete', bytes: TRACK_BYTES, totalBytes: TRACK_BYTES });
    expect(await world.account()).toEqual(ONCE);
  });

  it('is whole after a second break, and asks for the rest under the validator that it knows by then', async () => {
    await using world = await openRecoveryWorld({ pace: 40 });
    const { hash } = await generateDisturbed(world, breakTwice(world));
    expect(hash).toBe(undisturbedHash());
    const [second, first] = world.sent.filter(({ headers }) => headers['range']).reverse();
    expect(first?.headers['if-range']).toBeUndefined();
    expect(second?.headers['if-range']).toMatch(/^"\w+"$/);
    expect(second?.headers['range']).toBe(`bytes=${0.75 * TRACK_BYTES}-`);
    expect(await world.account()).toEqual(ONCE);
  });

  it('is whole although the gateway is killed and started again', async () => {
    await using world = await openRecoveryWorld();
    const restarts: Promise<void>[] = [];
    const restart = onceAt(world, 0.3, () => restarts.push(world.restartGateway()));
    const { hash, states } = await generateDisturbed(world, restart);
    await Promise.all(restarts);
    expect(states).toEqual(RECOVERED);
    expect(hash).toBe(undisturbedHash());
    expect(await world.account()).toEqual(ONCE);
  });

  it('is whole although the gateway stops and sends nothing, on connections that stay open', async () => {
    await using world = await openRecoveryWorld();
    const stop = onceAt(world, 0.3, () => void world.signalGateway('SIGSTOP'));
    const { hash, states } = await generateDisturbed(world, stop, {
      stallMs: STALL_MS,
      onProgress({ state }) {
        if (state === 'recovering') void world.signalGateway('SIGCONT');
      },
    });
    expect(states).toEqual(RECOVERED);
    expect(hash).toBe(undisturbedHash());
    expect(await world.account()).toEqual(ONCE);
  });

  it('is ordered again under the same key when the connection breaks before the head', async () => {
    await using world = await openRecoveryWorld();
    const order = world.gate.replace(MUSIC, async (forward) => {
      await forward();
      order.giveBack();
      world.network.break();
      return new Response(null, { status: 500 });
    });
    const { hash, states } = await generateDisturbed(world, () => {});
    expect(states).toEqual(['waiting', 'recovering', 'arriving', 'complete']);
    expect(hash).toBe(undisturbedHash());
    const [first, ...more] = world.gate.idempotencyKeys;
    expect(more).toEqual([first ?? 'a key']);
    expect(await world.account()).toEqual(ONCE);
  });
});

describe('a recovery', () => {
  it('does not order again when the caller rejects that, with the reason', async () => {
    const mine = new Error('another account is signed in');
    const { fetch, sent } = recorded(async () => new Response(null, { status: 503 }));
    const client = createGatewayClient({ baseUrl: 'http://gateway.test', fetch });
    const beforeRepeat = () => Promise.reject(mine);
    expect(await rejection(client.generate(ORDER, { beforeRepeat }))).toBe(mine);
    expect(sent).toHaveLength(1);
  });

  it('gives up in time, and tells which creation it was and under which key', async () => {
    await using world = await openRecoveryWorld({ pace: 40 });
    let id = '';
    const cut = onceAt(world, 0.5, (creationId) => {
      id = creationId;
      world.network.cut();
    });
    const options = { giveUpAfterMs: 1_000, idempotencyKey: 'a-key' };
    const error = await rejection(generateDisturbed(world, cut, options));
    expect(error).toMatchObject({ name: 'RecoveryError', code: 'gave_up', creationId: id });
    expect(error).toMatchObject({ idempotencyKey: 'a-key', cause: { status: 0 } });
    world.network.repair();
    expect(await world.account()).toEqual(ONCE);
  });

  it('ends with a refusal of the rest', async () => {
    await using world = await openRecoveryWorld({ pace: 40 });
    const cut = onceAt(world, 0.5, (creationId) => {
      replaceContent(world, creationId, () => new Response(null, { status: 404 }));
      world.network.break();
    });
    const error = await rejection(generateDisturbed(world, cut));
    expect(error).toMatchObject({ name: 'RecoveryError', code: 'refused', cause: { status: 404 } });
  });

  it('does not let a refusal of a repeated order look as if nothing had been ordered', async () => {
    await using world = await openRecoveryWorld({ pace: 40 });
    const order = world.gate.replace(MUSIC, async (forward) => {
      await forward();
      order.giveBack();
      world.gate.replace(MUSIC, () => new Response(null, { status: 402 }));
      world.network.break();
      return new Response(null, { status: 500 });
    });
    const error = await rejection(generateDisturbed(world, () => {}, { idempotencyKey: 'a-key' }));
    expect(error).toMatchObject({ name: 'RecoveryError', code: 'refused', cause: { status: 402 } });
    expect(error).toMatchObject({ creationId: null, idempotencyKey: 'a-key' });
  });

  it('is not tried after an order that was refused at first', async () => {
    await using world = await openRecoveryWorld();
    world.gate.replace(MUSIC, () => new Response(null, { status: 402 }));
    const error = await rejection(generateDisturbed(world, () => {}));
    expect(error).toMatchObject({ name: 'GatewayRequestError', status: 402, retryIsSafe: true });
    expect(world.gate.idempotencyKeys).toHaveLength(1);
  });

  it('ends at once when its signal is aborted, with the reason', async () => {
    await using world = await openRecoveryWorld({ pace: 40 });
    const abort = new AbortController();
    const reason = new Error('the user has left');
    const cut = onceAt(world, 0.5, () => world.network.cut());
    const onProgress = ({ state }: GenerationProgress) => {
      if (state === 'recovering') queueMicrotask(() => abort.abort(reason));
    };
    const generated = generateDisturbed(world, cut, { signal: abort.signal, onProgress });
    expect(await rejection(generated)).toBe(reason);
  });
});
