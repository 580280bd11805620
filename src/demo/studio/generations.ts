/** The tracks of an account that are being made: those that this page orders, and those that it waits for. */

import { GatewayRequestError } from '../../client/gateway-request.ts';
import type { GenerationOrder } from '../../client/generation-order.ts';
import { repeatWhileTemporary } from '../../client/repetition.ts';
import type { SignInStorage } from '../../client/sign-in.ts';
import { UnfinishedGenerations } from '../../client/unfinished-generations.ts';
import { type Doing, isSessionEnd } from './failure.ts';
import type { Outcome } from './generate-form.ts';
import {
  type GenerationParts,
  type Reception,
  receiveArriving,
  receiveWhole,
  type UnfinishedTrack,
} from './generation.ts';
import type { GenerationProgress, ProgressLine } from './generation-progress.ts';
import { createPlaces } from './places.ts';
import type { Player } from './player.ts';
import type { Creation } from './records.ts';
import { type Described, ownTrack } from './tracks.ts';

export interface Generations {
  /**
   * Orders a track for the account that is signed in, as soon as that can be confirmed. Never rejects.
   *
   * @param onBegun called when the upstream has begun to make it
   */
  order(order: GenerationOrder, idempotencyKey: string, onBegun: () => void): Promise<Outcome>;
  /** Whether an order of the same text is being sent again, after it was lost: it may become a track all the same. */
  isSentAgain(prompt: string): boolean;
  /** Opens a track in the player that is being made. False if it is complete. */
  open(creation: Creation): boolean;
  /** Whether one of them is this track. */
  has(trackId: string): boolean;
  /** Shows which of them is listened to. */
  showListening(trackId: string | undefined): void;
  /** Goes on with what this tab has ordered for the account before a reload, also with what has not been sent. */
  takeUp(account: string): void;
  /** Forgets what is under way for other accounts than this one. */
  abandonOthers(account: string | undefined): void;
}

export interface GenerationsParts extends GenerationParts {
  readonly player: GenerationParts['player'] &
    Pick<Player, 'isListening' | 'openArriving' | 'play' | 'pause'>;
  readonly progress: GenerationProgress;
  /** The tab's own. */
  readonly storage: SignInStorage;
  /** The account that is signed in. */
  readonly account: () => string | undefined;
  /** Whether that is still so. Rejects if that cannot be found out. */
  readonly confirmAccount: () => Promise<boolean>;
  /** Called when the account may have changed: when a generation begins, and when it ends. */
  readonly onChange: () => void;
  /** Called when one more of them is a track of the library. */
  readonly onFound: () => void;
  readonly onFailure: (error: unknown, doing: Doing, title: string) => void;
}

/** Two connections are left for the rest of the page. */
const ARRIVING_AT_ONCE = 4;
/** The reason of the signal of a generation whose account is not signed in any more. */
const ACCOUNT_GONE = Symbol('account gone');

interface Task {
  readonly title: string;
  /** What goes on once the upstream has begun to make the track. */
  readonly doing: Doing;
  /** Undefined for a track that another tab has ordered. */
  readonly idempotencyKey: string | undefined;
  /** Whether its order may have reached the upstream. */
  readonly isSent: boolean;
}

interface UnderWay extends Pick<Task, 'idempotencyKey'> {
  readonly account: string | undefined;
  readonly abort: AbortController;
  readonly line: ProgressLine;
  readonly title: string;
  doing: Doing;
  isSent: boolean;
  /** Whether its first attempt was lost. */
  isLost: boolean;
  found?: UnfinishedTrack | undefined;
}

export function createGenerations(parts: GenerationsParts): Generations {
  const { client, player, progress, storage, onChange, onFailure } = parts;
  const underWay = new Set<UnderWay>();
  const places = createPlaces(ARRIVING_AT_ONCE);
  const unfinishedOf = (account: string) => new UnfinishedGenerations(account, storage);
  /** Those that still wait are apart, because a refusal of what was sent before a reload leaves its outcome open. */
  const unsentOf = (account: string) => new UnfinishedGenerations(`${account} unsent`, storage);
  const openInPlayer = (found: UnfinishedTrack) => {
    player.openArriving(found.track, (seconds) => found.listen(seconds));
    player.drawPeaks(found.track.id, found.peaks);
  };
  const play = (found: UnfinishedTrack) => {
    openInPlayer(found);
    player.play();
  };

  async function run(
    { title, doing, idempotencyKey, isSent }: Task,
    receive: (reception: Reception) => Promise<void>,
    onBegun = () => {},
  ): Promise<Outcome> {
    const abort = new AbortController();
    const line = progress.begin(title, () => abort.abort());
    const account = parts.account();
    const own: UnderWay = {
      ...{ account, idempotencyKey, title, abort, line, isSent },
      ...{ doing: 'ordering', isLost: false },
    };
    const onFound = (found: UnfinishedTrack | undefined) => {
      own.doing = doing;
      own.found = found;
      line.pay();
      line.listen(false, doing === 'receiving');
      onBegun();
      parts.onFound();
      if (found) line.offer(found.track.cover, { onPlay: () => play(found), onPause: player.pause });
      if (found && !player.isListening) openInPlayer(found);
      onChange();
    };
    underWay.add(own);
    try {
      await receive({
        signal: abort.signal,
        line,
        onFound,
        onSent: () => {
          own.isSent = true;
        },
        onLost: () => {
          own.isLost = true;
        },
      });
      line.end('complete');
      forget(own);
      return 'done';
    } catch (error) {
      return fail(own, error);
    } finally {
      underWay.delete(own);
      onChange();
    }
  }

  function fail(own: UnderWay, error: unknown): Outcome {
    const { doing, line, abort, isSent, title } = own;
    if (abort.signal.aborted || error === ACCOUNT_GONE) return stop(own, error);
    if (doing === 'ordering') line.remove();
    else line.end('broken');
    // A person who has learnt of the outcome does not expect the order to be taken up, except after a new sign-in.
    if (!isSessionEnd(error, doing)) forget(own);
    onFailure(error, isSent ? doing : 'changing', title);
    return !isSent || (error instanceof GatewayRequestError && error.retryIsSafe) ? 'refused' : 'uncertain';
  }

  function stop(own: UnderWay, error: unknown): Outcome {
    const { doing, line, abort, isSent } = own;
    const stopped = isSent ? 'withdrawn' : 'unsent';
    if ([abort.signal.reason, error].includes(ACCOUNT_GONE)) line.remove();
    else line.end(doing === 'ordering' ? stopped : 'cancelled');
    forget(own);
    // What was not sent is refused, because an attempt before it may have been sent.
    return isSent ? 'done' : 'refused';
  }

  function forget({ account, idempotencyKey }: UnderWay): void {
    if (!account || !idempotencyKey) return;
    for (const kept of [unfinishedOf(account), unsentOf(account)]) kept.forget(idempotencyKey);
  }

  /** Another tab may have changed the account a moment ago, which would then be charged. */
  async function confirmPayer({ signal, line }: Reception): Promise<void> {
    const stopped = Promise.withResolvers<never>();
    signal.addEventListener('abort', () => stopped.reject(signal.reason));
    const confirmed = repeatWhileTemporary(parts.confirmAccount, { signal, onFailure: line.hold });
    if (!(await Promise.race([confirmed, stopped.promise]))) throw ACCOUNT_GONE;
  }

  function receiveOrdered(
    order: GenerationOrder,
    idempotencyKey: string,
    { isSent, onBegun }: { readonly isSent: boolean; readonly onBegun?: () => void },
  ) {
    const account = parts.account();
    const options = { idempotencyKey, ...(account !== undefined && { unfinished: unfinishedOf(account) }) };
    const unsent = account === undefined || isSent ? undefined : unsentOf(account);
    unsent?.keep({ order, idempotencyKey, creationId: null });
    return run(
      { title: order.prompt, doing: 'receiving', idempotencyKey, isSent },
      (reception) =>
        places.during(reception.signal, reception.line.queue, async () => {
          if (!isSent) await confirmPayer(reception);
          // From now on, the client keeps it.
          unsent?.forget(idempotencyKey);
          return receiveArriving(parts, order, reception, {
            ...options,
            // If somebody else is signed in, the page notices it now and aborts this generation.
            beforeRepeat: async () => void (await parts.confirmAccount()),
          });
        }),
      onBegun,
    );
  }

  function receiveMade(creation: Described) {
    const task = {
      title: creation.title,
      doing: 'changing',
      idempotencyKey: undefined,
      isSent: true,
    } as const;
    return run(task, (reception) => receiveWhole(parts, ownTrack(client, creation), reception));
  }

  return {
    order: (order, idempotencyKey, onBegun) =>
      receiveOrdered(order, idempotencyKey, { isSent: false, onBegun }),
    isSentAgain: (prompt) =>
      [...underWay].some(({ title, doing, isLost }) => title === prompt && doing === 'ordering' && isLost),
    open(creation) {
      if (player.has(creation.id)) return true;
      const known = [...underWay].find(({ found }) => found?.track.id === creation.id);
      if (!known?.found && !creation.isGenerating) return false;
      openInPlayer(known?.found ?? { track: ownTrack(client, creation), listen: () => undefined });
      if (!known) void receiveMade(creation);
      return true;
    },
    has: (id) => [...underWay].some(({ found }) => found?.track.id === id),
    showListening(trackId) {
      for (const { doing, found, line } of underWay)
        line.listen(found !== undefined && found.track.id === trackId, doing === 'receiving');
    },
    takeUp(account) {
      const isUnderWay = (key: string) => [...underWay].some(({ idempotencyKey }) => idempotencyKey === key);
      for (const isSent of [true, false])
        for (const { order, idempotencyKey } of (isSent ? unfinishedOf : unsentOf)(account).list())
          if (!isUnderWay(idempotencyKey)) void receiveOrdered(order, idempotencyKey, { isSent });
    },
    abandonOthers(account) {
      progress.removeOver();
      for (const { account: owner, abort, line } of underWay) {
        if (account !== undefined && owner === account) continue;
        // At once, because the page may already show another person's name.
        line.remove();
        abort.abort(ACCOUNT_GONE);
      }
    },
  };
}
