/** The audio of a generation, read over as many connections as it needs. */

import type { ArrivedAudio, Piece } from './arrived-audio.ts';
import { contentPath } from './creation-path.ts';
import { type GatewayConnection, GatewayRequestError, networkError, sendRequest } from './gateway-request.ts';
import { afterBreak, type RecoveredGeneration, RecoveryError } from './recovery-error.ts';
import { isTemporary, repeatWhileTemporary } from './repetition.ts';
import type { BegunTrack } from './send-order.ts';
import { beforeStall, type WatchedBody, watchBody } from './watched-body.ts';

interface Recovery {
  readonly connection: GatewayConnection;
  readonly idempotencyKey: string;
  readonly signal: AbortSignal;
  readonly stallMs: number;
  readonly giveUpAfterMs: number | undefined;
  readonly onBreak: () => void;
}

export class RecoveringBody {
  readonly #arrived: ArrivedAudio;
  readonly #recovery: Recovery;
  readonly #generation: RecoveredGeneration;
  #watched: WatchedBody;

  constructor({ creationId, body }: BegunTrack, arrived: ArrivedAudio, recovery: Recovery) {
    this.#arrived = arrived;
    this.#recovery = recovery;
    this.#generation = { creationId, idempotencyKey: recovery.idempotencyKey };
    this.#watched = watchBody(body, recovery);
  }

  /**
   * Undefined at the end.
   *
   * @throws RecoveryError when the rest cannot be had
   * @throws the signal's reason when it is aborted
   */
  async next(): Promise<Piece | undefined> {
    try {
      return await this.#nextFresh();
    } catch (error) {
      if (!isTemporary(error)) throw error;
      if (this.#arrived.isWhole) return undefined;
      this.#recovery.onBreak();
      return await this.#recover(error);
    }
  }

  async #recover(cause: GatewayRequestError): Promise<Piece | undefined> {
    const { creationId } = this.#generation;
    if (creationId === null) throw afterBreak(cause, this.#generation);
    // The first byte belongs to the attempt, so that connections that bring none do not follow each other at once.
    const readRest = async () => {
      this.#watched = watchBody(await this.#openRest(creationId), this.#recovery);
      return this.#nextFresh();
    };
    return repeatWhileTemporary(readRest, this.#recovery).catch((error) => {
      throw afterBreak(error, this.#generation);
    });
  }

  async #openRest(creationId: string): Promise<ReadableStream<Piece> | null> {
    const { connection, signal, stallMs } = this.#recovery;
    const attempt = new AbortController();
    const request = sendRequest(connection, `/api/upstream${contentPath(creationId)}`, {
      headers: this.#arrived.rangeHeaders(),
      // A browser's cache must not put this part together with another one.
      cache: 'no-store',
      signal: AbortSignal.any([signal, attempt.signal]),
    });
    const response = await beforeStall(request, stallMs, (stall) => attempt.abort(stall)).catch((error) => {
      if (error instanceof GatewayRequestError && error.status === 416) throw this.#changed(error);
      throw error instanceof GatewayRequestError ? error : networkError(error, signal, true);
    });
    if (this.#arrived.continues(response)) return response.body;
    attempt.abort();
    throw this.#changed();
  }

  /** Skips pieces of what is already here. */
  async #nextFresh(): Promise<Piece | undefined> {
    for (;;) {
      const piece = await this.#watched.next();
      if (!piece) return this.#end();
      const fresh = this.#arrived.add(piece);
      if (!fresh) throw this.#changed();
      if (fresh.length > 0) return fresh;
    }
  }

  #end(): undefined {
    // Before HTTP/2, a response without a length that breaks off looks as if it had ended.
    if (this.#arrived.isCutShort) throw networkError(undefined, this.#recovery.signal, true);
  }

  #changed(cause?: unknown): RecoveryError {
    return new RecoveryError('changed', this.#generation, cause);
  }
}
