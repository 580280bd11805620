/** What the checks derive from a history: chains, windows, and what a fault excuses. */

import { lifetimesFor } from '../../../src/gateway/refresh/record.ts';
import { testSettings } from '../../support/world.ts';
import type { Family, History, Moment, Request, Send, SignIn, SignOut, Token } from './history.ts';

/** Shorter than the defaults where that saves steps. */
export const settings = testSettings({
  UPSTREAM_URL: 'http://upstream.test',
  IDP_URL: 'http://identity-provider.test',
  REFRESH_REPLAY_SECONDS: '60',
  TIMEOUT_SIGN_IN_MS: '5000',
  TIMEOUT_LOGOUT_MS: '2000',
});
const PRESENTED_MS = 10_000;
/** More than the instances need to notify each other through Redis. */
export const SPREADS_MS = 200;
export const lifetimes = lifetimesFor(settings);
export const { signInMs, logoutMs } = settings.timeouts;

export class Facts {
  readonly history: History;

  constructor(history: History) {
    this.history = history;
  }

  /** The last send of the same token before this one, by any instance or by that one. */
  sendBefore(send: Send, instance?: string): Send | undefined {
    const { sends } = this.history;
    const isSame = (other: Send) =>
      other.token === send.token && (instance === undefined || other.instance === instance);
    return sends.slice(0, sends.indexOf(send)).findLast(isSame);
  }

  wasSentBetween(token: Token, from: Moment, to: Moment): boolean {
    return this.history.sends.some(
      (send) => send.token === token && isBefore(from, send.sent) && isBefore(send.sent, to),
    );
  }

  requestsOf(family: Family): Request[] {
    return this.history.requests.filter(({ token }) => token.family === family);
  }

  /** The generation of the newest pair that such requests have had before this moment. */
  newestPair(family: Family, before: Moment, isSuch: (request: Request) => boolean): number {
    const generations = this.history.requests.flatMap((request) => {
      const { pair, ended } = request;
      return pair?.family === family && isBefore(ended, before) && isSuch(request) ? [pair.generation] : [];
    });
    return Math.max(0, ...generations);
  }

  /** The send that exchanged this token, if its instance had the pair. */
  renewal(token: Token) {
    for (const send of this.history.sends) {
      const { ended, successor, outcome } = send;
      if (send.token === token && outcome === 'renewed' && ended && successor)
        return { sent: send.sent, ended, successor };
    }
    return undefined;
  }

  /** When the window of a spent token closes, by the arrival of a request: the earliest and the latest time. */
  closing(token: Token): { readonly earliest: number; readonly latest: number } {
    const never = Number.POSITIVE_INFINITY;
    const renewal = this.renewal(token);
    if (!renewal) return { earliest: never, latest: never };
    const { successor, ended } = renewal;
    const { presentations, sends } = this.history;
    const presentedAt = presentations.find(({ token }) => token === successor)?.moment.at ?? never;
    const next = sends.find((send) => send.token === successor && send.verdict === 'renewed')?.arrived;
    const spentAt = presentedAt < never ? (next?.at ?? never) : never;
    const knownAt = this.renewal(successor)?.ended.at ?? never;
    const byTime = Math.min(ended.at + lifetimes.replayMs, presentedAt + PRESENTED_MS);
    return {
      earliest: Math.min(byTime + 1, spentAt, this.closing(successor).earliest),
      latest: SPREADS_MS + Math.min(byTime, Math.max(presentedAt, knownAt)),
    };
  }

  /** Whether an instance was without Redis at any time in between. */
  wasRedisAway(from: Moment, to: Moment): boolean {
    return this.history.outages.some(
      ({ began, ended }) => began.at <= to.at + SPREADS_MS && (!ended || ended.at + SPREADS_MS >= from.at),
    );
  }

  crashOf(instance: string): Moment | undefined {
    return this.history.crashes.find((crash) => crash.instance === instance)?.moment;
  }

  /** The families that share a token's text with this one, so that an event with the text may be of any of them. */
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
      (signIn) => signIn.token === token && signIn.isAgain && isBefore(signIn.ended, moment),
    );
  }

  /**
   * Whether a sign-out of this text may still count: an instance that remembers it is not notified of a sign-in at the
   * other one, and a refresh that is in flight meanwhile can bring it back.
   */
  mayStillBeEnded(token: Token): boolean {
    const families = this.namesakesOf(token);
    return this.history.signIns.some((signIn) => {
      if (!signIn.isAgain || !families.has(signIn.token.family)) return false;
      const isElsewhere = (other: Pick<SignOut, 'token' | 'instance'>) =>
        families.has(other.token.family) && other.instance[0] !== signIn.instance[0];
      const isMeanwhile = (request: Request) =>
        families.has(request.token.family) && wasInFlightDuring(request, signIn);
      const { signOuts, requests } = this.history;
      return signOuts.some(isElsewhere) || requests.some((each) => isElsewhere(each) || isMeanwhile(each));
    });
  }

  signOutsOf({ family }: Token): SignOut[] {
    return this.history.signOuts.filter(({ token }) => token.family === family);
  }

  /** Requests that no fault disturbs, with all that they need to be judged. */
  undisturbed(): Judged[] {
    const judged: Judged[] = [];
    for (const request of this.history.requests) {
      const { token, asked, ended, outcome } = request;
      if (!asked || !ended || !outcome || this.wasIssuedAgain(token)) continue;
      if (this.wasRedisAway(firstOf(token).issued, ended)) continue;
      judged.push({ ...request, asked, ended, outcome });
    }
    return judged;
  }

  /** Whether a sign-out with one token also finds the other, by what is known of their chain at that time. */
  isLinked(signOut: SignOut, token: Token): boolean {
    const { token: signedOut, began } = signOut;
    if (token.family !== signedOut.family) return false;
    // A later sign-out finds no successors any more.
    const hasPredecessor = this.signOutsOf(token).some((other) => isBefore(other.began, began));
    if (token !== signedOut && hasPredecessor) return false;
    const [first, last] = token.generation > signedOut.generation ? [signedOut, token] : [token, signedOut];
    for (let { before } = last; before && before.generation >= first.generation; { before } = before) {
      const renewal = this.renewal(before);
      // A sign-out follows the chain to its end at once, a request with an older token whenever it comes.
      if (first === signedOut && renewal && renewal.ended.at + lifetimes.renewedMs <= began.at) return false;
    }
    return true;
  }

  /** The sign-outs that were over before this moment, found this token, and are remembered at that time. */
  effectiveSignOuts(token: Token, instance: string, before: Moment, at = before.at): SignOut[] {
    return this.signOutsOf(token).filter(
      (signOut) =>
        signOut.ended &&
        isBefore(signOut.ended, before) &&
        !this.isRepeated(signOut) &&
        this.#hasEnded(signOut, token, instance) &&
        at < signOut.ended.at + this.#rememberedMs(signOut) - SPREADS_MS,
    );
  }

  /** Whether an earlier sign-out may still be remembered, to which this one adds nothing. */
  isRepeated({ token, instance, began }: SignOut): boolean {
    return this.signOutsOf(token).some((first) => {
      const at = first.ended?.at ?? began.at;
      const isEarlier = isBefore(first.began, began) && this.#hasEnded(first, token, instance);
      return isEarlier && began.at < at + this.#rememberedMs(first) + SPREADS_MS;
    });
  }

  /** One of a token of which Redis knows nothing is remembered by its instance alone, and for its token alone. */
  #hasEnded(signOut: SignOut, token: Token, instance: string): boolean {
    if (this.#isKnown(signOut)) return this.isLinked(signOut, token);
    return signOut.token === token && signOut.instance === instance;
  }

  #rememberedMs(signOut: SignOut): number {
    return this.#isKnown(signOut) ? lifetimes.endedMs : lifetimes.unknownEndedMs;
  }

  /** Whether a refresh has issued or spent the token, or is about to spend it. */
  #isKnown({ token, began }: SignOut): boolean {
    if (token.before && began.at - token.issued.at < lifetimes.issuedMs) return true;
    return this.history.sends.some((send) => {
      const { ended, outcome } = send;
      if (send.token !== token || !isBefore(send.sent, began)) return false;
      if (!ended || !isBefore(ended, began)) return !this.crashOf(send.instance);
      return outcome === 'renewed' && began.at < ended.at + lifetimes.renewedMs;
    });
  }
}

export type Judged = Request & {
  readonly asked: Moment;
  readonly ended: Moment;
  readonly outcome: NonNullable<Request['outcome']>;
};

/** Whether both have happened, and the first one came first. */
export function isBefore(one: Moment | undefined, other: Moment | undefined): boolean {
  return one !== undefined && other !== undefined && one.order < other.order;
}

/** Whether the request was in flight when the sign-in issued its token. */
export function wasInFlightDuring({ arrived, ended }: Request, signIn: SignIn): boolean {
  return !isBefore(signIn.ended, arrived) && !isBefore(ended, signIn.token.issued);
}

function firstOf(token: Token): Token {
  return token.before ? firstOf(token.before) : token;
}
