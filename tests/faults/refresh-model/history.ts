/** What happened in one schedule, as the checks read it. */

import { RequestRecord } from '../../../src/gateway/record/request-record.ts';

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
  /** When the upstream refused one of its tokens as spent, or was signed out from it. */
  revoked?: Moment;
}

interface Place {
  readonly token: Token;
  /** The process, such as `B2` after a crash of `B1`. */
  readonly instance: string;
}

/** A refresh token on its way to the upstream and back. */
export interface Send extends Place {
  readonly sent: Moment;
  arrived?: Moment;
  successor?: Token;
  /** When the instance had its outcome. */
  ended?: Moment;
  outcome?: 'renewed' | 'rejected' | 'unreachable';
}

/** A request of a client that carries a refresh token and asks for a refresh. */
export interface Request extends Place {
  readonly arrived: Moment;
  readonly record: RequestRecord;
  asked?: Moment;
  /** Undefined for ever when its instance has crashed. */
  ended?: Moment;
  outcome?: 'renewed' | 'rejected' | 'unreachable' | 'ended';
  /** Of the pair that the refresh yielded. */
  pair?: Token;
  /** When it asked for the newest pair, just before its response left. */
  leaves?: Moment;
  /** Of the pair that its client received. */
  given?: Token;
}

export interface SignOut extends Place {
  readonly began: Moment;
  /** Undefined while it is in flight, and for ever when its instance has crashed. */
  ended?: Moment;
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
  readonly upstreamSignOuts: Token[] = [];
  readonly outages: Outage[] = [];
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

  request(place: Place): Request {
    const record = new RequestRecord(new globalThis.Request('http://gateway.test'));
    const request = { ...place, arrived: this.present(place), record };
    this.requests.push(request);
    return request;
  }

  send(place: Place): Send {
    const send = { ...place, sent: this.moment(`${place.instance} sends ${place.token.text}`) };
    this.sends.push(send);
    return send;
  }

  signOut(place: Place): SignOut {
    const began = this.moment(`the sign-out of ${place.token.text} at ${place.instance} begins`);
    const signOut = { ...place, began };
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
