/** What happened in one schedule, and what follows from it: windows, sign-outs that count, and what a fault excuses. */

import type { RequestRecord } from '../../../src/gateway/record/request-record.ts';
import type { RefreshOutcome } from '../../../src/gateway/refresh/coordinator.ts';
import { lifetimesFor } from '../../../src/gateway/refresh/facts.ts';
import type { RefreshVerdict } from '../../../src/gateway/upstream/upstream-api.ts';
import { testSettings } from '../../support/world.ts';
import { START } from './virtual-time.ts';

/** Shorter than the defaults where that saves steps. */
export const settings = testSettings({
  REFRESH_REPLAY_SECONDS: '60',
  TIMEOUT_SIGN_IN_MS: '5000',
  TIMEOUT_LOGOUT_MS: '2000',
});
export const PRESENTED_MS = 10_000;
/** From the loss of the cookies until the user has been at the identity provider. */
export const FASTEST_SIGN_IN_MS = 1000;
/** More than the instances need to notify each other through Redis. */
export const SPREADS_MS = 200;
/** How long an outage may last after the last thing that is shared when it is over, and how long that takes. */
const SHORT_MS = 8000;
const SHARING_MS = 2000;
const lifetimes = lifetimesFor(settings);
const NEVER = Number.POSITIVE_INFINITY;

export interface Moment {
  /** In virtual milliseconds. */
  readonly at: number;
  /** Of two moments at the same time, the one with the smaller number came first. */
  readonly order: number;
}

export interface Token {
  readonly text: string;
  readonly family: Family;
  /** The token whose refresh issued this one; undefined when a sign-in did. */
  readonly before: Token | undefined;
  readonly generation: number;
  readonly issued: Moment;
  /** When a client has shown it first. */
  presented?: Moment;
}

/** All tokens that follow from one sign-in. */
interface Family {
  readonly began: Moment;
  /** When the upstream refused one of its tokens as spent, ended it, or was signed out from it. */
  revoked?: Moment | undefined;
  /** Whether a later sign-in has issued its token again. */
  isReissued?: boolean;
}

export interface Place {
  readonly token: Token;
  /** The process, such as `B2` after a crash of `B1`. */
  readonly instance: string;
}

/** An instance has no Redis. */
interface Outage {
  readonly began: Moment;
  ended?: Moment;
}

/** A refresh token on its way to the upstream and back. */
export interface Send extends Place {
  readonly sent: Moment;
  arrived?: Moment;
  /** Undefined when nothing, or the same token, was issued. */
  successor?: Token | undefined;
  /** When the instance had the verdict. */
  ended?: Moment;
  verdict?: RefreshVerdict['kind'];
}

/** A request of a client that carries a refresh token and asks for a refresh. */
export interface Request extends Place {
  readonly arrived: Moment;
  readonly record: RequestRecord;
  asked?: Moment;
  /** Undefined for ever when its instance has crashed. */
  ended?: Moment;
  outcome?: RefreshOutcome['kind'];
  /** Of the pair that the refresh yielded. */
  pair?: Token;
  /** When it asked for the newest pair, just before its response left. */
  leaves?: Moment;
  /** Of the pair that its response sets. */
  given?: Token | undefined;
  /** When its response left, with or without cookies. */
  left?: Moment;
  /** What its response has done to cookies that the upstream still takes. Without `to`, it has cleared them. */
  changed?: { readonly from: Token; readonly to: Token | undefined };
}

/** By the user, or by a sign-in that came with the cookies of the session. */
export interface SignOut extends Place {
  readonly by: 'sign-out' | 'sign-in';
  readonly began: Moment;
  /** When the session had ended here. Undefined while it is in flight, and for ever when its instance has crashed. */
  ended?: Moment;
  /** When the response left. */
  left?: Moment;
  /** By a sign-in at this instance that had the same token again. */
  undone?: { readonly instance: string; readonly began: Moment; readonly done: Moment };
}

export class History {
  readonly sends: Send[] = [];
  readonly requests: Request[] = [];
  readonly signOuts: SignOut[] = [];
  /** The upstream was asked to sign out with these. */
  readonly upstreamSignOuts: (Place & { readonly sent: Moment })[] = [];
  /** From when an instance had no Redis until it had it again. */
  readonly outages: Outage[] = [];
  /** Which process stood still, and from when. */
  readonly standstills: { readonly instance: string; readonly began: Moment }[] = [];
  /** When each process crashed. */
  readonly crashes = new Map<string, Moment>();
  /** Why the schedule had to be given up, and what was left when nothing was in flight any more. */
  readonly unfinished: string[] = [];
  readonly events: string[] = [];
  readonly accessTokensLastMs: number;
  readonly #time: { readonly now: number };

  constructor(time: { readonly now: number }, accessTokensLastMs: number) {
    this.#time = time;
    this.accessTokensLastMs = accessTokensLastMs;
  }

  moment(what: string): Moment {
    const at = this.#time.now;
    return { at, order: this.events.push(`${at - START} ms  ${what}`) };
  }

  present({ token, instance }: Place): Moment {
    const moment = this.moment(`${token.text} is presented at ${instance}`);
    token.presented ??= moment;
    return moment;
  }

  signOut(place: Place, by: SignOut['by']): SignOut {
    const began = this.moment(`the ${by} with ${place.token.text} at ${place.instance} begins`);
    const signOut = { ...place, by, began };
    this.signOuts.push(signOut);
    return signOut;
  }

  /** The send that exchanged this token, if its instance had the pair. */
  renewalOf(token: Token) {
    for (const { token: sent, ended, successor, verdict } of this.sends) {
      if (sent === token && verdict === 'renewed' && ended && successor) return { ended, successor };
    }
    return undefined;
  }

  /**
   * When the window of a spent token closes, by the arrival of a request: the earliest and the latest time.
   *
   * @param by what has happened later keeps it open for no longer
   */
  closingOf(token: Token, by: Moment): { readonly earliest: number; readonly latest: number } {
    const renewal = this.renewalOf(token);
    if (!renewal) return { earliest: NEVER, latest: NEVER };
    const { successor, ended } = renewal;
    // A response that is on its way with the successor keeps it open, unless its instance crashes. An instance that has
    // no Redis does not learn of those of others.
    const ways = this.requests.filter((each) => each.pair === successor && isBefore(each.ended, by));
    const surelyFrom = ways.map(({ leaves }) =>
      leaves && !this.wasRedisAway(ended, by) ? leaves.at - lifetimes.replayMs / 2 - SPREADS_MS : 0,
    );
    const perhapsFrom = ways.map(({ leaves }) => leaves?.at ?? NEVER);
    const presentedAt = successor.presented?.at ?? NEVER;
    const presentedBy = isBefore(successor.presented, by) ? presentedAt : NEVER;
    const next = this.sends.find((send) => send.token === successor && send.successor)?.arrived;
    const spentAt = presentedAt < NEVER ? (next?.at ?? NEVER) : NEVER;
    const knownAt = this.renewalOf(successor)?.ended.at ?? NEVER;
    const untilFrom = (ways: readonly number[]) => Math.max(ended.at, ...ways) + lifetimes.replayMs;
    const surelyUntil = Math.min(untilFrom(surelyFrom), presentedAt + PRESENTED_MS);
    const perhapsUntil = presentedBy < NEVER ? presentedBy + PRESENTED_MS : untilFrom(perhapsFrom);
    return {
      earliest: Math.min(surelyUntil + 1, spentAt, this.closingOf(successor, by).earliest),
      latest: SPREADS_MS + Math.min(perhapsUntil, Math.max(presentedBy, knownAt)),
    };
  }

  /** Whether an instance was without Redis at any time in between. */
  wasRedisAway(from: Moment, to: Moment): boolean {
    return this.outages.some((outage) => this.#overlaps(outage, from, to));
  }

  #overlaps({ began, ended }: Outage, from: Moment, to: Moment): boolean {
    return began.at <= to.at + SPREADS_MS && (!ended || ended.at + SPREADS_MS >= from.at);
  }

  /** Whether Redis was away when the first send ended, and was back soon, and long before the second one. */
  isSharedSince(first: Send, second: Send): boolean {
    const { ended } = first;
    if (!ended || this.wasDisturbed(first.instance) || this.wasDisturbed(second.instance)) return false;
    const outages = this.outages.filter((each) => this.#overlaps(each, first.sent, second.sent));
    const isShort = (outage: Outage) =>
      isBetween(outage.began, ended, outage.ended) &&
      Number(outage.ended?.at) < Math.min(ended.at + SHORT_MS, second.sent.at - SHARING_MS);
    return outages.length > 0 && outages.every(isShort);
  }

  /** Whether an instance had the upstream's word by then that a token of this session is not renewed. */
  wasRejected(family: Family, by: Moment): boolean {
    return this.sends.some((send) => isRejection(send, family) && isBefore(send.ended, by));
  }

  /** Whether the process stood still, after one moment and before the other. */
  stoodStill(name: string, after: Moment, before: Moment): boolean {
    return this.standstills.some(
      ({ instance, began }) => instance === name && isBetween(after, began, before),
    );
  }

  /** Whether it has crashed, or stood still. */
  wasDisturbed(name: string): boolean {
    return this.crashes.has(name) || this.standstills.some(({ instance }) => instance === name);
  }

  /** The generation of the newest pair of the session that such requests have had before this moment. */
  newestPair(family: Family, before: Moment, instance?: string): number {
    const generations = this.requests
      .filter((request) => isBefore(request.ended, before) && (!instance || request.instance === instance))
      .map(({ pair }) => (pair?.family === family ? pair.generation : 0));
    return Math.max(0, ...generations);
  }

  signOutsOf({ family }: Token): SignOut[] {
    return this.signOuts.filter(({ token }) => token.family === family);
  }

  /**
   * Whether the first sign-out of the session was over by then, and has ended this token for this instance until that
   * moment. A repeated one adds nothing.
   */
  isSignedOut(place: Place, by: Moment, until = by): boolean {
    const { token } = place;
    const signOuts = this.signOutsOf(token).filter(({ undone }) => !undone);
    const [signOut] = signOuts;
    // Of two at the same time, either may be the one that ends the rest of the chain.
    if (signOuts.some(({ began, ended }) => isBefore(began, signOut?.ended) && !isBefore(ended, by)))
      return false;
    if (!signOut?.ended) return false;
    const isFound = this.#isShared(token.family, until) ? isLinked(signOut, token) : isSame(signOut, place);
    // It may still remember an earlier one, which only another instance has forgotten.
    const remembered = this.signOutsOf(token).find(
      (each) => isSame(each, signOut) && each.undone?.instance !== signOut.instance,
    );
    const { at } = remembered?.ended ?? signOut.ended;
    return isFound && until.at < at + lifetimes.endedMs - SPREADS_MS;
  }

  /** Whether the process knew of this end of the session. */
  isNoticed(end: SignOut, place: Place, by: Moment): boolean {
    return isBefore(end.ended, by) && (this.#isShared(place.token.family, by) || isSame(end, place));
  }

  /** Otherwise it is remembered by its instance alone, and for its token alone. */
  #isShared(family: Family, until: Moment): boolean {
    return !family.isReissued && !this.wasRedisAway(family.began, until);
  }
}

type Perhaps = Moment | undefined;

/** Whether both have happened, and the first one came first. */
export function isBefore(one: Perhaps, other: Perhaps): boolean {
  return one !== undefined && other !== undefined && one.order < other.order;
}

export function isBetween(from: Perhaps, moment: Perhaps, to: Perhaps): boolean {
  return isBefore(from, moment) && isBefore(moment, to);
}

export function isSame(one: Place, other: Place): boolean {
  return one.token === other.token && one.instance === other.instance;
}

/** Whether nothing may be known of a renewal any more. */
export function isForgotten(renewal: Pick<Send, 'ended'> | undefined, by: Moment): boolean {
  return renewal?.ended !== undefined && by.at >= renewal.ended.at + lifetimes.renewedMs - SPREADS_MS;
}

/** An instance had the upstream's word that a token of this session is not renewed. */
export function isRejection({ token, verdict }: Send, family: Family): boolean {
  return token.family === family && verdict === 'rejected';
}

/** A sign-out follows the chain to its end at once; a request with an older token follows it whenever it comes. */
function isLinked({ token: signedOut, began }: SignOut, token: Token): boolean {
  for (let each = token; each.before && each.generation > signedOut.generation; each = each.before) {
    if (each.issued.at + lifetimes.renewedMs <= began.at) return false;
  }
  return true;
}
