/** What happened in one schedule, as the checks read it. */

import { RequestRecord } from '../../../src/gateway/record/request-record.ts';

export interface Moment {
  /** In virtual milliseconds. */
  readonly at: number;
  /** Of two moments at the same time, the one with the smaller number came first. */
  readonly order: number;
}

/** One issue of a refresh token. When a sign-in issues the same text again, that is another token. */
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
  readonly number: number;
  /** When the upstream refused one of its tokens as spent, or was signed out from it. */
  revoked: Moment | undefined;
}

/** A refresh token on its way to the upstream and back. */
export interface Send {
  readonly token: Token;
  readonly instance: string;
  readonly sent: Moment;
  arrived?: Moment;
  verdict?: 'renewed' | 'rejected';
  successor?: Token;
  /** When the instance had its outcome. */
  ended?: Moment;
  outcome?: 'renewed' | 'rejected' | 'unreachable';
}

/** A request of a client that carries a refresh token and asks for a refresh. */
export interface Request {
  readonly token: Token;
  readonly instance: string;
  readonly arrived: Moment;
  readonly record: RequestRecord;
  asked?: Moment;
  ended?: Moment;
  outcome?: 'renewed' | 'rejected' | 'unreachable' | 'ended';
  /** Of the pair that the refresh yielded. */
  pair?: Token;
  /** When it asked for the newest pair, just before its response left. */
  leaves?: Moment;
  /** Of the pair that its client received. */
  given?: Token;
  /** Its instance crashed before it had a response, so its outcome is unknown. */
  isLost?: true;
}

export interface SignOut {
  readonly token: Token;
  readonly instance: string;
  readonly began: Moment;
  /** Undefined while it is in flight, and for ever when its instance has crashed. */
  ended?: Moment;
}

export interface SignIn {
  readonly token: Token;
  readonly instance: string;
  /** Whether the text of its token had been issued before. */
  readonly isAgain: boolean;
  /** From when on its client may have the token. */
  ended?: Moment;
}

/** From when an instance had no Redis until it had it again. */
export interface Outage {
  readonly began: Moment;
  ended?: Moment;
}

interface Place {
  readonly token: Token;
  readonly instance: string;
}

export class History {
  readonly accessTokensLastMs: number;
  readonly tokens: Token[] = [];
  readonly sends: Send[] = [];
  readonly requests: Request[] = [];
  /** A client has shown a token. */
  readonly presentations: { readonly token: Token; readonly moment: Moment }[] = [];
  readonly signOuts: SignOut[] = [];
  /** The texts of the tokens with which the upstream was asked to sign out. */
  readonly upstreamSignOuts: string[] = [];
  readonly signIns: SignIn[] = [];
  readonly outages: Outage[] = [];
  readonly crashes: { readonly instance: string; readonly moment: Moment }[] = [];
  /** Timers that were left when nothing was in flight any more. */
  timersLeft = 0;
  /** Why the schedule had to be given up. */
  stuck: string | undefined;
  readonly #now: () => number;
  readonly #start: number;
  readonly #events: string[] = [];

  constructor(accessTokensLastMs: number, now: () => number) {
    this.accessTokensLastMs = accessTokensLastMs;
    this.#now = now;
    this.#start = now();
  }

  moment(what: string): Moment {
    const at = this.#now();
    return { at, order: this.#events.push(`${at - this.#start} ms  ${what}`) };
  }

  request({ token, instance }: Place): Request {
    const record = new RequestRecord(new globalThis.Request('http://gateway.test'));
    return kept(this.requests, { token, instance, arrived: this.present({ token, instance }), record });
  }

  present({ token, instance }: Place): Moment {
    const moment = this.moment(`${token.text} is presented at ${instance}`);
    return kept(this.presentations, { token, moment }).moment;
  }

  send({ token, instance }: Place): Send {
    const sent = this.moment(`${instance} sends ${token.text} to the upstream`);
    return kept(this.sends, { token, instance, sent });
  }

  signOut({ token, instance }: Place): SignOut {
    const began = this.moment(`the sign-out of ${token.text} at ${instance} begins`);
    return kept(this.signOuts, { token, instance, began });
  }

  issue(family: Family, before: Token | undefined, again?: string): Token {
    const generation = before ? before.generation + 1 : 0;
    const text = again ?? `t${family.number}.${generation}`;
    const issued = this.moment(`${text} is issued`);
    return kept(this.tokens, { text, family, before, generation, issued });
  }

  /** What happened in order, for a reader. */
  story(): string {
    return this.#events.join('\n');
  }
}

function kept<Kind>(all: Kind[], one: Kind): Kind {
  all.push(one);
  return one;
}
