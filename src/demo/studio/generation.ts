/** Receives a track that is being made: as it arrives, with recovery, or as a whole when it is complete. */

import type { GatewayClient } from '../../client/gateway-client.ts';
import type { GenerationOptions } from '../../client/generation.ts';
import type { GenerationOrder } from '../../client/generation-order.ts';
import type { LiveAudio } from '../../client/live-audio/live-audio.ts';
import { ArrivingTrack } from './arriving-track.ts';
import type { ProgressLine } from './generation-progress.ts';
import type { Peaks } from './peaks.ts';
import type { Listen, Track } from './playback.ts';
import type { Player } from './player.ts';
import type { TrackPeaks } from './track-peaks.ts';
import { ownTrack } from './tracks.ts';

export interface GenerationParts {
  readonly client: Pick<GatewayClient, 'generate' | 'awaitCreation' | 'contentUrl'>;
  readonly liveAudio: LiveAudio;
  readonly player: Pick<Player, 'has' | 'showRecovery' | 'complete' | 'breakOff' | 'drawPeaks'>;
  readonly peaks: TrackPeaks;
}

/** A track that the player can open before it is complete. */
export interface UnfinishedTrack {
  readonly track: Track;
  readonly peaks?: Peaks | undefined;
  listen: Listen;
}

export interface Reception {
  readonly signal: AbortSignal;
  readonly line: ProgressLine;
  /** Called when the upstream has begun to make the track. Without an id, it cannot be opened here. */
  readonly onFound: (found: UnfinishedTrack | undefined) => void;
  /** Called before an order is sent. */
  readonly onSent: () => void;
  /** Called when an order is sent again, because nobody knows what has become of the one before. */
  readonly onLost: () => void;
}

/** @throws what the client's `generate` does, and what its body fails with */
export async function receiveArriving(
  { client, liveAudio, player, peaks }: GenerationParts,
  order: GenerationOrder,
  { signal, line, onSent, onFound, onLost }: Reception,
  options: Pick<GenerationOptions, 'idempotencyKey' | 'unfinished' | 'beforeRepeat'>,
): Promise<void> {
  let arriving: ArrivingTrack | undefined;
  onSent();
  const { creationId, contentType, body } = await client.generate(order, {
    ...options,
    signal,
    onProgress(progress) {
      line.update(progress);
      if (progress.state === 'recovering') onLost();
      line.showShare(arriving?.share);
      if (arriving) player.showRecovery(arriving.track.id, progress.state === 'recovering');
    },
  });
  if (creationId !== null) {
    const { prompt, music_length_ms } = order;
    const track = ownTrack(client, {
      ...{ id: creationId, title: prompt, prompt, seconds: music_length_ms / 1_000 },
    });
    const draw = (peaks: Peaks) => {
      player.drawPeaks(creationId, peaks);
      line.showShare(arriving?.share);
    };
    arriving = new ArrivingTrack(track, contentType, liveAudio, draw);
  }
  onFound(arriving);
  try {
    // Not every browser can iterate over a stream.
    await body.pipeTo(new WritableStream({ write: (piece) => arriving?.add(piece) }));
  } catch (error) {
    arriving?.break();
    if (arriving) player.breakOff(arriving.track.id);
    throw error;
  }
  if (!arriving) return;
  const { track } = arriving;
  arriving.end();
  player.complete(track.id);
  void peaks.keep(track, arriving.audio).then((outline) => player.drawPeaks(track.id, outline));
}

/** Waits for a track that arrives elsewhere: in another tab, or in this one before a reload. */
export async function receiveWhole(
  { client, player, peaks }: GenerationParts,
  track: Track,
  { signal, line, onFound }: Reception,
): Promise<void> {
  line.await();
  onFound({ track, listen: () => undefined });
  try {
    await client.awaitCreation(track.id, { signal });
  } catch (error) {
    player.breakOff(track.id);
    throw error;
  }
  player.complete(track.id);
  if (player.has(track.id)) {
    void peaks.of(track).then((outline) => player.drawPeaks(track.id, outline));
  }
}
