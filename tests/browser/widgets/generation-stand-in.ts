/** A generation that arrives as the test says, and a log of everything that it sets off. */

import { mock } from 'bun:test';
import type { Generation, GenerationOptions, GenerationOrder } from '../../../src/client/generation.ts';
import { createGenerator } from '../../../src/demo/studio/generation.ts';
import type { Track } from '../../../src/demo/studio/playback.ts';
import { settle } from './page.ts';

export const ORDER: GenerationOrder = { model: 'music-1', prompt: 'Rain', music_length_ms: 30_000 };
export const TRACK: Track = {
  id: 'c1',
  title: 'Rain',
  seconds: 30,
  url: 'https://gateway.test/c1/content',
  crossOrigin: 'use-credentials',
};

interface StandInOptions {
  readonly creationId?: string | null;
  /** Whether a service worker serves the page. */
  readonly isLive?: boolean;
}

export function beginGeneration({ creationId = 'c1', isLive = true }: StandInOptions = {}) {
  const log: unknown[][] = [];
  const { readable, writable } = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>();
  const writer = writable.getWriter();
  const answer = Promise.withResolvers<Generation>();
  const outline = Promise.withResolvers<readonly number[]>();
  const generate = mock((_order: GenerationOrder, _options?: GenerationOptions) => answer.promise);
  const update = () => {};
  const run = createGenerator({
    client: { generate, contentUrl: (id) => `https://gateway.test/${id}/content` },
    liveAudio: {
      begin(contentType) {
        log.push(['live', contentType]);
        if (!isLive) return undefined;
        return {
          url: '/live/1',
          add: (piece) => void log.push(['add', [...piece]]),
          end: () => void log.push(['end']),
          break: () => void log.push(['break']),
        };
      },
    },
    player: {
      openArriving: (track, url) => void log.push(['open', track, url]),
      complete: (id) => void log.push(['complete', id]),
      breakOff: (id) => void log.push(['break off', id]),
      drawPeaks: (id, peaks) => void log.push(['draw', id, peaks]),
    },
    peaks: {
      async keep(track, audio) {
        log.push(['keep', track.id, [...(await audio.bytes())]]);
        return outline.promise;
      },
    },
    progress: {
      begin: () => void log.push(['progress', 'begin']),
      update,
      end: (outcome) => void log.push(['progress', outcome]),
      hide: () => void log.push(['progress', 'hide']),
    },
    onChange: () => void log.push(['change']),
    onFailure: (error, doing) => void log.push(['failure', error, doing]),
  });
  const abort = new AbortController();
  return {
    generate,
    update,
    outline,
    signal: abort.signal,
    outcome: run(ORDER, 'key', abort.signal),
    takeLog: () => log.splice(0),
    /** The audio begins. */
    answer() {
      answer.resolve({ creationId, generationId: null, contentType: 'audio/wav', body: readable });
      return settle();
    },
    refuse: (error: Error) => answer.reject(error),
    arrive: (...bytes: number[]) => writer.write(new Uint8Array(bytes)).then(settle),
    finish: () => writer.close().then(settle),
    fail: (error: Error) => writer.abort(error),
    /** The client's call and body end as they do when they are aborted. */
    cancel() {
      abort.abort();
      answer.reject(abort.signal.reason);
      writer.abort(abort.signal.reason).catch(() => {});
    },
  };
}
