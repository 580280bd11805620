/** Generates a track, and plays it while it arrives. A break of the connection pauses only what has not arrived yet. */

import type { GatewayClient } from '../../client/gateway-client.ts';
import { GatewayRequestError } from '../../client/gateway-request.ts';
import type { GenerationOrder } from '../../client/generation.ts';
import {
  generateWithRecovery,
  type RecoveryOptions,
  type RecoveryProgress,
} from '../../client/recovering-generation.ts';
import { ArrivingTrack } from './arriving-track.ts';
import type { Doing } from './failure.ts';
import type { Outcome } from './generate-form.ts';
import type { GenerationProgress } from './generation-progress.ts';
import type { LiveAudio } from './live-audio.ts';
import type { Player } from './player.ts';
import type { TrackPeaks } from './track-peaks.ts';
import { ownTrack } from './tracks.ts';

export interface GeneratorParts {
  readonly client: Pick<GatewayClient, 'generate' | 'upstream' | 'contentUrl'>;
  readonly liveAudio: LiveAudio;
  readonly player: Pick<Player, 'openArriving' | 'showRecovery' | 'complete' | 'breakOff' | 'drawPeaks'>;
  readonly peaks: Pick<TrackPeaks, 'keep'>;
  readonly progress: GenerationProgress;
  /** Called when the account may have changed: when a generation begins, and when it ends. */
  readonly onChange: () => void;
  readonly onFailure: (error: unknown, doing: Doing) => void;
}

export type Generate = (
  order: GenerationOrder,
  idempotencyKey: string,
  signal: AbortSignal,
) => Promise<Outcome>;

export function createGenerator(parts: GeneratorParts): Generate {
  const { player, progress, onChange, onFailure } = parts;
  return async (order, idempotencyKey, signal) => {
    let begun: string | undefined;
    const onProgress = (seen: RecoveryProgress) => {
      progress.update(seen);
      if (begun !== undefined) player.showRecovery(begun, seen.state === 'recovering');
    };
    const onBegun = (creationId: string) => {
      begun = creationId;
      onChange();
    };
    progress.begin();
    try {
      await generate(order, { idempotencyKey, signal, onProgress }, parts, onBegun);
      progress.end('complete');
      return 'done';
    } catch (error) {
      if (signal.aborted) {
        progress.end('cancelled');
        return 'done';
      }
      if (begun === undefined) progress.hide();
      else progress.end('broken');
      onFailure(error, begun === undefined ? 'ordering' : 'receiving');
      return error instanceof GatewayRequestError && error.retryIsSafe ? 'refused' : 'uncertain';
    } finally {
      onChange();
    }
  };
}

async function generate(
  order: GenerationOrder,
  options: RecoveryOptions,
  { client, liveAudio, player, peaks }: GeneratorParts,
  onBegun: (creationId: string) => void,
): Promise<void> {
  const { creationId, contentType, body } = await generateWithRecovery(client, order, options);
  onBegun(creationId ?? '');
  // Without an id the track cannot be opened here; it appears in the library.
  if (creationId === null) return drain(body, () => {});

  const creation = { id: creationId, prompt: order.prompt, seconds: order.music_length_ms / 1_000 };
  const track = ownTrack(client, creation);
  const arriving = new ArrivingTrack(track, contentType, liveAudio);
  player.openArriving(track, arriving.listen());
  try {
    await drain(body, (piece) => arriving.add(piece));
  } catch (error) {
    arriving.break();
    player.breakOff(track.id);
    throw error;
  }
  arriving.end();
  player.complete(track.id);
  player.drawPeaks(track.id, await peaks.keep(track, arriving.audio));
}

async function drain(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  take: (piece: Uint8Array<ArrayBuffer>) => void,
): Promise<void> {
  const reader = body.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) take(next.value);
}
