/** What happened in one schedule, as the checks read it. */

import type { RequestRecord } from '../../../src/gateway/record/request-record.ts';
import type { RefreshOutcome } from '../../../src/gateway/refresh/coordinator.ts';
import type { RefreshVerdict } from '../../../src/gateway/upstream/upstream-api.ts';

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
}

/** All tokens that follow from one sign-in. */
export interface Family {
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

/** A response to a request has changed the cookies of the browser. Undefined: it has none. */
export interface CookieChange {
  readonly request: Request;
  readonly from: Token | undefined;
  readonly to: Token | undefined;
  /** Whether the upstream would have renewed the former. */
  readonly wasLive: boolean;
}

/** From when an instance had no Redis until it had it again. */
export interface Outage {
  readonly began: Moment;
  ended?: Moment;
}

export class History {
  readonly sends: Send[] = [];
  readonly requests: Request[] = [];
  /** Clients have shown these tokens. */
  readonly presentations: { readonly token: Token; readonly moment: Moment }[] = [];
  readonly signOuts: SignOut[] = [];
  /** The upstream was asked to sign out with these. */
  readonly upstreamSignOuts: (Place & { readonly sent: Moment })[] = [];
  readonly cookieChanges: CookieChange[] = [];
  readonly outages: Outage[] = [];
  /** Which process stood still, from when, and for how long. */
  readonly standstills: { readonly instance: string; readonly began: Moment; readonly ms: number }[] = [];
  /** When each process crashed. */
  readonly crashes = new Map<string, Moment>();
  /** Timers that were left when nothing was in flight any more. */
  timersLeft = 0;
  /** Why the schedule had to be given up. */
  stuck: string | undefined;
  readonly events: string[] = [];
  readonly accessTokensLastMs: number;
  readonly #time: { readonly now: number };
  readonly #start: number;

  constructor(time: { readonly now: number }, accessTokensLastMs: number) {
    this.#time = time;
    this.#start = time.now;
    this.accessTokensLastMs = accessTokensLastMs;
  }

  moment(what: string): Moment {
    const at = this.#time.now;
    return { at, order: this.events.push(`${at - this.#start} ms  ${what}`) };
  }

  present({ token, instance }: Place): Moment {
    const moment = this.moment(`${token.text} is presented at ${instance}`);
    this.presentations.push({ token, moment });
    return moment;
  }

  request(place: Place, record: RequestRecord): Request {
    const request = { ...place, arrived: this.present(place), record };
    this.requests.push(request);
    return request;
  }

  send(place: Place): Send {
    const send = { ...place, sent: this.moment(`${place.instance} sends ${place.token.text}`) };
    this.sends.push(send);
    return send;
  }

  signOut(place: Place, by: SignOut['by']): SignOut {
    const began = this.moment(`the ${by} with ${place.token.text} at ${place.instance} begins`);
    const signOut = { ...place, by, began };
    this.signOuts.push(signOut);
    return signOut;
  }

  /** @param before the token whose refresh issues this one, or the name of a new family */
  issue(before: Token | string): Token {
    const isFirst = typeof before === 'string';
    const generation = isFirst ? 0 : before.generation + 1;
    const text = isFirst ? `${before}.0` : before.text.replace(/\d+$/, String(generation));
    const issued = this.moment(`${text} is issued`);
    const family = isFirst ? { began: issued } : before.family;
    return { text, family, before: isFirst ? undefined : before, generation, issued };
  }
}
