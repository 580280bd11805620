/** Generates a track, and disturbs it at certain shares of its bytes. */

import type { GenerationOptions, GenerationProgress } from '../../../src/client/generation.ts';
import { ORDER, type RecoveryWorld, TRACK_BYTES } from './recovery-world.ts';

/** What the account has and has paid after one track. */
export const ONCE = { creations: 1, credits: 10 };

/** Generates a track, and disturbs it when so many of its bytes have arrived. */
export async function generateDisturbed(
  { client }: RecoveryWorld,
  disturb: (share: number, creationId: string) => void,
  options: GenerationOptions = {},
) {
  const seen: GenerationProgress[] = [];
  const onProgress = (progress: GenerationProgress) => {
    seen.push(progress);
    options.onProgress?.(progress);
  };
  const generation = await client.generate(ORDER, { ...options, onProgress });
  const hash = new Bun.CryptoHasher('sha256');
  let bytes = 0;
  for await (const piece of generation.body) {
    hash.update(piece);
    bytes += piece.length;
    disturb(bytes / TRACK_BYTES, generation.creationId ?? '');
  }
  return { hash: hash.digest('hex'), seen, states: statesOf(seen) };
}

/** Without repetitions. */
function statesOf(seen: readonly GenerationProgress[]): string[] {
  return seen.map(({ state }) => state).filter((state, index, all) => state !== all[index - 1]);
}

/** Disturbs a track once, at this share of its bytes. The upstream sends no more of it before that. */
export function onceAt({ gate }: RecoveryWorld, share: number, disturb: (creationId: string) => void) {
  const audio = gate.holdAudio(Math.ceil(share * TRACK_BYTES));
  return once(share, (creationId) => {
    disturb(creationId);
    audio.release();
  });
}

function once(share: number, disturb: (creationId: string) => void) {
  let isDone = false;
  return (arrived: number, creationId: string) => {
    if (isDone || arrived < share) return;
    isDone = true;
    disturb(creationId);
  };
}

/** Replaces the responses to the audio of the creation. */
export function replaceContent(
  { gate }: RecoveryWorld,
  creationId: string,
  respond: Parameters<RecoveryWorld['gate']['replace']>[1],
): void {
  gate.replace(`GET /v1/music/creations/${creationId}/content`, respond);
}

/** Breaks the generation in its middle, and the response with its rest at three quarters of the track. */
export function breakTwice(world: RecoveryWorld, change = (own: Response) => own) {
  const first = onceAt(world, 0.5, (creationId) => {
    replaceContent(world, creationId, async (forward) => {
      const own = await forward();
      if (own.status !== 206) return own;
      replaceContent(world, creationId, async (again) => change(await again()));
      const rest = await own.bytes();
      const headers = new Headers(own.headers);
      headers.delete('content-length');
      const part = rest.subarray(0, rest.length - TRACK_BYTES / 4);
      return new Response(silentAfter(part), { status: 206, headers });
    });
    world.network.break();
  });
  const second = once(0.75, () => world.network.break());
  return (arrived: number, creationId: string) => {
    first(arrived, creationId);
    second(arrived, creationId);
  };
}

/** Sends these bytes, and nothing more while its connection lasts. */
function silentAfter(bytes: Uint8Array): ReadableStream<Uint8Array> {
  const silence = Promise.withResolvers<void>();
  let isSent = false;
  return new ReadableStream({
    async pull(controller) {
      if (isSent) await silence.promise;
      else controller.enqueue(bytes);
      isSent = true;
    },
    cancel: () => silence.resolve(),
  });
}
