/** Generates a track whose audio outlives its connection: after a break, it goes on where it has broken off. */

import { ArrivedAudio } from './arrived-audio.ts';
import type { MadeCheck } from './being-made.ts';
import { type GatewayConnection, GatewayRequestError } from './gateway-request.ts';
import type { Generation, GenerationOptions, GenerationProgress } from './generation.ts';
import { copyOrder } from './generation-order.ts';
import { NotAudioError, refuseText } from './not-audio-error.ts';
import { openAudio } from './open-audio.ts';
import { RecoveringBody } from './recovering-body.ts';
import { afterBreak } from './recovery-error.ts';
import { repeatWhileTemporary } from './repetition.ts';
import { sendOrder } from './send-order.ts';

const STALL_MS = 20_000;

/**
 * Orders a track, as the client's `generate` describes. Its body fails with a RecoveryError, with the signal's reason on
 * abort.
 */
export async function generate(
  connection: GatewayConnection,
  madeCheck: MadeCheck,
  order: object,
  options: GenerationOptions = {},
): Promise<Generation> {
  const { idempotencyKey = crypto.randomUUID(), stallMs = STALL_MS, giveUpAfterMs } = options;
  const { unfinished, beforeRepeat, path } = options;
  const sent = copyOrder(order, path);
  const left = new AbortController();
  const signal = options.signal ? AbortSignal.any([left.signal, options.signal]) : left.signal;
  const arrived = new ArrivedAudio();
  const report = reporter(arrived, options.onProgress);
  // One that is taken up was sent before, in the page that a reload has ended.
  const kept = unfinished?.list().find((each) => each.idempotencyKey === idempotencyKey);
  let isRepeated = kept !== undefined;
  /** Known of a track that is taken up, or that the upstream finishes although the gateway had no memory for it. */
  let creationId = kept?.creationId ?? null;
  const noteCreation = (error: GatewayRequestError) => {
    creationId ??= error.creationId;
    if (creationId === null) return;
    isRepeated = true;
    keep(creationId);
  };
  const onFailure = (error: GatewayRequestError) => {
    isRepeated = true;
    noteCreation(error);
    report('recovering');
  };

  const keep = (creationId: string | null) =>
    unfinished?.keep({ order: sent, path, idempotencyKey, creationId });
  const forget = () => unfinished?.forget(idempotencyKey);

  keep(creationId);
  report('waiting');
  const send = async () => {
    if (isRepeated) await beforeRepeat?.();
    if (creationId !== null)
      return openAudio(connection, { creationId, idempotencyKey, arrived, madeCheck, signal, stallMs });
    return sendOrder(connection, sent, { idempotencyKey, signal, path });
  };
  const generation = await repeatWhileTemporary(send, { signal, giveUpAfterMs, onFailure }).catch((error) => {
    if (error instanceof GatewayRequestError) noteCreation(error);
    // A refusal says nothing of the attempt before it, so it must not look as if nothing had been ordered.
    if (isRepeated && !signal.aborted) throw afterBreak(error, { creationId, idempotencyKey });
    if (signal.aborted || (error instanceof GatewayRequestError && error.retryIsSafe)) forget();
    throw error;
  });
  try {
    await refuseText(generation, { stallMs, signal });
    keep(generation.creationId);
    report('arriving');
  } catch (error) {
    // The same order under the same key would have the same response.
    if (error instanceof NotAudioError || signal.aborted) forget();
    // Nobody else can close the connection.
    left.abort(error);
    throw error;
  }
  const recovering = new RecoveringBody(generation, arrived, {
    ...{ connection, madeCheck, idempotencyKey, signal, stallMs, giveUpAfterMs },
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

function reporter(arrived: ArrivedAudio, onProgress: GenerationOptions['onProgress']) {
  const begun = performance.now();
  let firstByteMs: number | undefined;
  return (state: GenerationProgress['state']) => {
    const { bytes } = arrived;
    const elapsedMs = performance.now() - begun;
    if (bytes > 0) firstByteMs ??= elapsedMs;
    const totalBytes = state === 'complete' ? bytes : arrived.totalBytes;
    onProgress?.({ state, bytes, totalBytes, elapsedMs, firstByteMs });
  };
}
