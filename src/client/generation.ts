/** What a generation is: its options, its progress and its outcome. */

import type { OwnFormPath } from './generation-order.ts';
import type { UnfinishedGenerations } from './unfinished-generations.ts';

export interface GenerationOptions {
  /** Where an order of the upstream's own form is sent, with lyrics or a seed; by default the gateway's own route. */
  readonly path?: OwnFormPath | undefined;
  /**
   * By default, a new one. Use the same one again to retry an attempt whose outcome is unknown: an upstream that honours
   * the key makes and charges for one creation.
   */
  readonly idempotencyKey?: string;
  /**
   * Ends the wait, or the body. The gateway lets the generation finish anyway, because it is paid for.
   */
  readonly signal?: AbortSignal;
  /** A connection that brings no byte of a begun track for so long counts as broken. By default, 20,000. */
  readonly stallMs?: number;
  /** How long to try again after a break; by default, 600,000. */
  readonly giveUpAfterMs?: number;
  /** Keeps the order until its outcome is known. One that is kept already counts as sent before. */
  readonly unfinished?: Pick<UnfinishedGenerations<object>, 'list' | 'keep' | 'forget'>;
  /**
   * Called before the order is sent again. Reject, or abort the signal, when another account is signed in meanwhile: the
   * session's cookies are those of the whole browser, and that account would pay.
   */
  readonly beforeRepeat?: () => Promise<void>;
  /** Called for each change and each piece. An error thrown here ends the promise or the body. */
  readonly onProgress?: (progress: GenerationProgress) => void;
}

export interface GenerationProgress {
  /** `waiting` for the first response; `recovering` from a break, before or in the audio. */
  readonly state: 'waiting' | 'arriving' | 'recovering' | 'complete';
  readonly bytes: number;
  /** Known after a recovery, and at the end. */
  readonly totalBytes: number | undefined;
  /** Milliseconds since the order was sent. */
  readonly elapsedMs: number;
  /** Milliseconds until the first byte; undefined until it has arrived. */
  readonly firstByteMs: number | undefined;
}

/** A track that is being generated. Its body must be read or cancelled. */
export interface Generation {
  readonly creationId: string | null;
  readonly generationId: string | null;
  readonly contentType: string;
  /** The audio. It fails with a RecoveryError when it cannot be recovered, with the signal's reason on abort. */
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
}
