/** Generates a track, plays it while it arrives, and keeps its bytes for the waveform. */

import type { GatewayClient } from '../../client/gateway-client.ts';
import { GatewayRequestError } from '../../client/gateway-request.ts';
import type { GenerationOptions, GenerationOrder } from '../../client/generation.ts';
import type { Doing } from './failure.ts';
import type { Outcome } from './generate-form.ts';
import type { GenerationProgress } from './generation-progress.ts';
import type { LiveAudio, LiveTrack } from './live-audio.ts';
import type { Player } from './player.ts';
import type { TrackPeaks } from './track-peaks.ts';
import { ownTrack } from './tracks.ts';

export interface GeneratorParts {
  readonly client: Pick<GatewayClient, 'generate' | 'contentUrl'>;
  readonly liveAudio: LiveAudio;
  readonly player: Pick<Player, 'openArriving' | 'complete' | 'breakOff' | 'drawPeaks'>;
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

type Piece = Uint8Array<ArrayBuffer>;

export function createGenerator(parts: GeneratorParts): Generate {
  const { progress, onChange, onFailure } = parts;
  return async (order, idempotencyKey, signal) => {
    let hasBegun = false;
    const onBegun = () => {
      hasBegun = true;
      onChange();
    };
    progress.begin();
    try {
      await generate(order, { idempotencyKey, signal, onProgress: progress.update }, parts, onBegun);
      progress.end('complete');
      return 'done';
    } catch (error) {
      if (signal.aborted) {
        progress.end('cancelled');
        return 'done';
      }
      if (hasBegun) progress.end('broken');
      else progress.hide();
      onFailure(error, hasBegun ? 'receiving' : 'ordering');
      return error instanceof GatewayRequestError && error.retryIsSafe ? 'refused' : 'uncertain';
    } finally {
      onChange();
    }
  };
}

async function generate(
  order: GenerationOrder,
  options: GenerationOptions,
  { client, liveAudio, player, peaks }: GeneratorParts,
  onBegun: () => void,
): Promise<void> {
  const { creationId, contentType, body } = await client.generate(order, options);
  onBegun();
  // Without an id the track cannot be opened here; it appears in the library.
  if (creationId === null) return drain(body, () => {});

  const creation = { id: creationId, prompt: order.prompt, seconds: order.music_length_ms / 1_000 };
  const track = ownTrack(client, creation);
  const live = liveAudio.begin(contentType);
  player.openArriving(track, live?.url);
  const pieces = await receive(body, live).catch((error) => {
    player.breakOff(track.id);
    throw error;
  });
  player.complete(track.id);
  player.drawPeaks(track.id, await peaks.keep(track, new Blob(pieces)));
}

async function receive(body: ReadableStream<Piece>, live: LiveTrack | undefined): Promise<Piece[]> {
  const pieces: Piece[] = [];
  try {
    await drain(body, (piece) => {
      pieces.push(piece);
      live?.add(piece);
    });
  } catch (error) {
    live?.break();
    throw error;
  }
  live?.end();
  return pieces;
}

async function drain(body: ReadableStream<Piece>, take: (piece: Piece) => void): Promise<void> {
  const reader = body.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) take(next.value);
}
