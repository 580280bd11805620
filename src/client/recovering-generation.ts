/** Generates a track whose audio outlives its connection: after a break, it goes on where it has broken off. */

import { ArrivedAudio } from './arrived-audio.ts';
import type { GatewayClient } from './gateway-client.ts';
import { GatewayRequestError } from './gateway-request.ts';
import {
  copyOrder,
  type Generation,
  type GenerationOptions,
  type GenerationOrder,
  type GenerationProgress,
} from './generation.ts';
import { RecoveringBody } from './recovering-body.ts';
import { afterBreak } from './recovery-error.ts';
import { repeatWhileTemporary } from './repetition.ts';
import type { UnfinishedGenerations } from './unfinished-generations.ts';

export interface RecoveryOptions extends Pick<GenerationOptions, 'idempotencyKey' | 'signal'> {
  /** A connection that brings no byte of a begun track for so long counts as broken. By default, 20,000. */
  readonly stallMs?: number;
  /** How long to try again after a break; by default, 600,000. */
  readonly giveUpAfterMs?: number;
  /** Keeps the order until its outcome is known. */
  readonly unfinished?: Pick<UnfinishedGenerations, 'keep' | 'forget'>;
  /** Called for each change and each piece. An error thrown here ends the promise or the body. */
  readonly onProgress?: (progress: RecoveryProgress) => void;
}

export interface RecoveryProgress extends GenerationProgress {
  /** `waiting` for the first response; `recovering` from a break, before or in the audio. */
  readonly state: 'waiting' | 'arriving' | 'recovering' | 'complete';
  /** Known after a recovery, and at the end. */
  readonly totalBytes: number | undefined;
}

const STALL_MS = 20_000;

/**
 * Orders a track as the client's `generate` does. While no audio has arrived, a break repeats the order under the same
 * key; afterwards, the rest is read from the creation. The upstream has to honour the key, and to serve ranges.
 *
 * The body fails with a {@link RecoveryError}, with the signal's reason on abort.
 *
 * @throws GatewayRequestError when the order is refused before any break
 * @throws RecoveryError when it is refused after a break, or the break lasts too long
 * @throws the signal's reason, by default an `AbortError`, when aborted
 */
export async function generateWithRecovery(
  client: Pick<GatewayClient, 'generate' | 'upstream'>,
  order: GenerationOrder,
  options: RecoveryOptions = {},
): Promise<Generation> {
  const { idempotencyKey = crypto.randomUUID(), stallMs = STALL_MS, giveUpAfterMs, unfinished } = options;
  const left = new AbortController();
  const signal = options.signal ? AbortSignal.any([left.signal, options.signal]) : left.signal;
  const arrived = new ArrivedAudio();
  const report = reporter(arrived, options.onProgress);
  let isRepeated = false;
  const onFailure = () => {
    isRepeated = true;
    report('recovering');
  };

  const keep = (creationId: string | null) =>
    unfinished?.keep({ order: copyOrder(order), idempotencyKey, creationId });
  const forget = () => unfinished?.forget(idempotencyKey);

  keep(null);
  report('waiting');
  const send = () => client.generate(order, { idempotencyKey, signal });
  const generation = await repeatWhileTemporary(send, { signal, giveUpAfterMs, onFailure }).catch((error) => {
    // A refusal says nothing of the attempt before it, so it must not look as if nothing had been ordered.
    if (isRepeated && !signal.aborted) throw afterBreak(error, { creationId: null, idempotencyKey });
    if (signal.aborted || (error instanceof GatewayRequestError && error.retryIsSafe)) forget();
    throw error;
  });
  keep(generation.creationId);
  report('arriving');
  const recovering = new RecoveringBody(generation, arrived, {
    ...{ client, idempotencyKey, signal, stallMs, giveUpAfterMs },
    onBreak: () => report('recovering'),
  });
  const body: Generation['body'] = new ReadableStream({
    async pull(controller) {
      try {
        const piece = await recovering.next();
        report(piece ? 'arriving' : 'complete');
        if (piece) return controller.enqueue(piece);
        forget();
        controller.close();
      } catch (error) {
        if (signal.aborted) forget();
        left.abort(error);
        throw error;
      }
    },
    cancel(reason) {
      forget();
      left.abort(reason);
    },
  });
  return { ...generation, body };
}

function reporter(arrived: ArrivedAudio, onProgress: RecoveryOptions['onProgress']) {
  const begun = performance.now();
  let firstByteMs: number | undefined;
  return (state: RecoveryProgress['state']) => {
    const { bytes } = arrived;
    const elapsedMs = performance.now() - begun;
    if (bytes > 0) firstByteMs ??= elapsedMs;
    const totalBytes = state === 'complete' ? bytes : arrived.totalBytes;
    onProgress?.({ state, bytes, totalBytes, elapsedMs, firstByteMs });
  };
}
