/** What the checks derive from a history: chains, windows, and what a fault excuses. */

import { recordLifetimes } from '../../../src/gateway/refresh/record-lifetimes.ts';
import type { Family, History, Request, Send, SignOut, Token } from './history.ts';
import { settings } from './settings.ts';
import type { Moment } from './virtual-time.ts';

const PRESENTED_MS = 10_000;
/** More than the instances need to tell each other through Redis. */
export const SPREADS_MS = 200;
export const lifetimes = recordLifetimes(settings);
/** How long a sign-out is remembered of whose token nothing is known. */
export const shortestSignOutMs = Math.min(lifetimes.signOut.claimedMs, lifetimes.signOut.unknownMs);
export const { signInMs, logoutMs } = settings.timeouts;

export class Facts {
  readonly history: History;

  constructor(history: History) {
    this.history = history;
  }

  /** The send that exchanged this token, if its instance had the pair. */
  renewal(token: Token): (Send & { readonly ended: Moment; readonly successor: Token }) | undefined {
    for (const send of this.history.sends) {
      const { ended, successor } = send;
      if (send.token === token && send.outcome === 'renewed' && ended && successor)
        return { ...send, ended, successor };
    }
    return undefined;
  }

  firstPresented(token: Token): Moment | undefined {
    return this.history.presentations.find((presentation) => presentation.token === token)?.moment;
  }

  /** The earliest arrival for which the window of a spent token may be closed. */
  mayCloseAt(token: Token): number {
    const renewal = this.renewal(token);
    if (!renewal) return Number.POSITIVE_INFINITY;
    const { successor, ended } = renewal;
    const presented = this.firstPresented(successor);
    const renewedNext = this.history.sends.find(
      (send) => send.token === successor && send.verdict === 'renewed',
    )?.arrived;
    return Math.min(
      ended.at + lifetimes.replayMs + 1,
      presented ? presented.at + PRESENTED_MS + 1 : Number.POSITIVE_INFINITY,
      presented && renewedNext ? renewedNext.at : Number.POSITIVE_INFINITY,
      this.mayCloseAt(successor),
    );
  }

  /** From this arrival on the window of a spent token is closed. */
  mustCloseAt(token: Token): number {
    const renewal = this.renewal(token);
    if (!renewal) return Number.POSITIVE_INFINITY;
    const { successor, ended } = renewal;
    const presented = this.firstPresented(successor);
    const next = this.renewal(successor)?.ended;
    return (
      SPREADS_MS +
      Math.min(
        ended.at + lifetimes.replayMs,
        presented ? presented.at + PRESENTED_MS : Number.POSITIVE_INFINITY,
        presented && next ? Math.max(presented.at, next.at) : Number.POSITIVE_INFINITY,
      )
    );
  }

  /** Whether an instance was without Redis at any time in between. */
  wasRedisAway(from: Moment, to: Moment): boolean {
    return this.history.outages.some(
      ({ began, ended }) => began.at <= to.at + SPREADS_MS && (!ended || ended.at + SPREADS_MS >= from.at),
    );
  }

  wasForged({ family }: Token): boolean {
    return this.history.forged.some(({ token }) => token.family === family);
  }

  crashOf(instance: string): Moment | undefined {
    return this.history.crashes.find((crash) => crash.instance === instance)?.moment;
  }

  /** The families that share a token's text with this one: of what happens to it, it cannot be said whose it is. */
  namesakesOf({ family }: Token): Set<Family> {
    const { tokens } = this.history;
    const families = new Set([family]);
    for (let before = 0; before < families.size; ) {
      before = families.size;
      const texts = new Set(tokens.filter((token) => families.has(token.family)).map(({ text }) => text));
      for (const token of tokens) if (texts.has(token.text)) families.add(token.family);
    }
    return families;
  }

  wasIssuedAgain(token: Token): boolean {
    return this.namesakesOf(token).size > 1;
  }

  /** Whether the sign-in that has issued this token had done so when that moment came. */
  isIssuedAgainBy(token: Token, moment: Moment): boolean {
    return this.history.signIns.some(
      ({ token: issued, isAgain, ended }) =>
        issued === token && isAgain && ended !== undefined && ended.order < moment.order,
    );
  }

  /**
   * Whether an instance may have a sign-out of this text in its memory still, and tell Redis of it again: the other
   * instance does not hear of the sign-in, and a request that is in flight meanwhile brings the sign-out back.
   */
  mayStillBeEnded(token: Token): boolean {
    const families = this.namesakesOf(token);
    return this.history.signIns.some(({ isAgain, instance, token: issued, ended }) => {
      if (!isAgain || !families.has(issued.family)) return false;
      const isElsewhere = (other: Pick<SignOut, 'token' | 'instance'>) =>
        families.has(other.token.family) && other.instance[0] !== instance[0];
      const isMeanwhile = (request: Request) =>
        families.has(request.token.family) &&
        (!ended || request.arrived.order < ended.order) &&
        (!request.ended || request.ended.order > issued.issued.order);
      return (
        this.history.signOuts.some(isElsewhere) ||
        this.history.requests.some((request) => isElsewhere(request) || isMeanwhile(request))
      );
    });
  }

  signOutsOf({ family }: Token): SignOut[] {
    return this.history.signOuts.filter(({ token }) => token.family === family);
  }

  /** Requests whose history no fault disturbs, with all that they need to be judged. */
  undisturbed(): Judged[] {
    const judged: Judged[] = [];
    for (const request of this.history.requests) {
      const { token, asked, ended, outcome } = request;
      if (!asked || !ended || !outcome || this.wasForged(token) || this.wasIssuedAgain(token)) continue;
      if (this.wasRedisAway(firstOf(token).issued, ended)) continue;
      judged.push({ ...request, asked, ended, outcome });
    }
    return judged;
  }

  /** Whether a sign-out with the one token also finds the other, by what is known of their chain at that time. */
  isLinked(signOut: SignOut, token: Token): boolean {
    const { token: signedOut, began } = signOut;
    if (token.family !== signedOut.family) return false;
    if (token !== signedOut && this.hasPredecessor(signOut)) return false;
    const [first, last] = token.generation > signedOut.generation ? [signedOut, token] : [token, signedOut];
    for (let { before } = last; before && before.generation >= first.generation; { before } = before) {
      const renewal = this.renewal(before);
      // A sign-out follows the chain to its end at once, a request with an older token whenever it comes.
      if (first === signedOut && renewal && renewal.ended.at + lifetimes.keepMs <= began.at) return false;
    }
    return true;
  }

  /** Whether another sign-out has been there before, so that this one finds no successors any more. */
  hasPredecessor({ token, began }: SignOut): boolean {
    return this.signOutsOf(token).some((other) => other.began.order < began.order);
  }

  /** Until when the sign-out of this token is remembered; shorter for one that no refresh has spent or issued. */
  rememberedUntil({ token, began, ended }: SignOut): number {
    const { workedMs } = lifetimes.signOut;
    const issuedFor = token.before ? began.at - token.issued.at : Number.POSITIVE_INFINITY;
    const renewal = this.renewal(token);
    const hasWorked =
      issuedFor < lifetimes.issuedMs ||
      (renewal !== undefined &&
        renewal.ended.order < began.order &&
        began.at < renewal.ended.at + lifetimes.keepMs);
    return ended.at + (hasWorked ? workedMs : shortestSignOutMs) - SPREADS_MS;
  }
}

export type Judged = Request & {
  readonly asked: Moment;
  readonly ended: Moment;
  readonly outcome: NonNullable<Request['outcome']>;
};

function firstOf(token: Token): Token {
  let first = token;
  while (first.before) first = first.before;
  return first;
}
