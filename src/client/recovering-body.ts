/** The audio of a generation, read over as many connections as it needs. */

import type { ArrivedAudio, Piece } from './arrived-audio.ts';
import type { MadeCheck } from './being-made.ts';
import { type GatewayConnection, type GatewayRequestError, networkError } from './gateway-request.ts';
import { openAudio } from './open-audio.ts';
import { afterBreak, type RecoveredGeneration, RecoveryError } from './recovery-error.ts';
import { isTemporary, repeatWhileTemporary } from './repetition.ts';
import type { BegunTrack } from './send-order.ts';
import { type WatchedBody, watchBody } from './watched-body.ts';

interface Recovery {
  readonly connection: GatewayConnection;
  readonly madeCheck: MadeCheck;
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
      const rest = { ...this.#recovery, creationId, arrived: this.#arrived };
      const { body } = await openAudio(this.#recovery.connection, rest);
      this.#watched = watchBody(body, this.#recovery);
      return this.#nextFresh();
    };
    return repeatWhileTemporary(readRest, this.#recovery).catch((error) => {
      throw afterBreak(error, this.#generation);
    });
  }

  /** Skips pieces of what is already here. */
  async #nextFresh(): Promise<Piece | undefined> {
    for (;;) {
      const piece = await this.#watched.next();
      if (!piece) return this.#end();
      const fresh = this.#arrived.add(piece);
      if (!fresh) throw new RecoveryError('changed', this.#generation);
      if (fresh.length > 0) return fresh;
    }
  }

  #end(): undefined {
    // Before HTTP/2, a response without a length that breaks off looks as if it had ended.
    if (this.#arrived.isCutShort) throw networkError(undefined, this.#recovery.signal, true);
  }
}
