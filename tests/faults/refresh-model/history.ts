/** What happened in one schedule, as the checks read it. */

import type { RequestTrace } from '../../../src/gateway/trace/request-trace.ts';
import type { Moment } from './virtual-time.ts';

/** One issue of a refresh token: when a sign-in issues the same text again, that is another one. */
export interface Token {
  readonly text: string;
  /** All that came of one sign-in. */
  readonly family: Family;
  /** The token whose refresh issued this one; undefined when a sign-in did. */
  readonly before: Token | undefined;
  readonly generation: number;
  readonly issued: Moment;
}

export interface Family {
  readonly number: number;
  /** Whether the upstream has refused one of its tokens as spent, or was signed out from it. */
  revoked: Moment | undefined;
}

/** A refresh token on its way to the upstream and back. */
export interface Send {
  readonly token: Token;
  readonly instance: string;
  readonly sent: Moment;
  arrived: Moment | undefined;
  verdict: 'renewed' | 'rejected' | undefined;
  successor: Token | undefined;
  /** When the instance had its outcome, and which it was. */
  ended: Moment | undefined;
  outcome: 'renewed' | 'rejected' | 'unreachable' | undefined;
}

/** A request of a client that carries a refresh token and asks for a refresh. */
export interface Request {
  readonly token: Token;
  readonly instance: string;
  readonly arrived: Moment;
  asked: Moment | undefined;
  ended: Moment | undefined;
  outcome: 'renewed' | 'rejected' | 'unreachable' | 'ended' | undefined;
  /** Of the pair that the refresh yielded. */
  pair: Token | undefined;
  /** When it asked for the newest pair, just before its response left. */
  leaves: Moment | undefined;
  /** Of the pair that its client received. */
  given: Token | undefined;
  readonly trace: RequestTrace;
  /** Whether its instance has crashed before it had a response, so that nobody knows what became of it. */
  isLost: boolean;
}

/** A client has shown this token. */
export interface Presentation {
  readonly token: Token;
  readonly instance: string;
  readonly moment: Moment;
}

export interface SignOut {
  readonly token: Token;
  readonly instance: string;
  readonly began: Moment;
  ended: Moment;
  /** False while it is under way, and for ever when its instance has crashed. */
  isOver: boolean;
}

/** The upstream was asked to sign out with this token. */
export interface UpstreamSignOut {
  readonly text: string;
  readonly instance: string;
  readonly sent: Moment;
}

export interface SignIn {
  readonly token: Token;
  readonly instance: string;
  /** Whether the text of its token had been issued before. */
  readonly isAgain: boolean;
  /** From when on its client may have the token. */
  ended: Moment | undefined;
}

/** From when an instance had no Redis until it had it again. */
export interface Outage {
  readonly instance: string;
  readonly began: Moment;
  ended: Moment | undefined;
}

export class History {
  readonly accessTokensLastMs: number;
  readonly tokens: Token[] = [];
  readonly sends: Send[] = [];
  readonly requests: Request[] = [];
  readonly presentations: Presentation[] = [];
  readonly signOuts: SignOut[] = [];
  readonly upstreamSignOuts: UpstreamSignOut[] = [];
  readonly signIns: SignIn[] = [];
  readonly outages: Outage[] = [];
  readonly crashes: { readonly instance: string; readonly moment: Moment }[] = [];
  readonly forged: { readonly token: Token; readonly moment: Moment }[] = [];
  /** Timers that were left when nothing was under way any more. */
  timersLeft = 0;
  /** Why the schedule had to be given up. */
  stuck: string | undefined;

  constructor(accessTokensLastMs: number) {
    this.accessTokensLastMs = accessTokensLastMs;
  }
}
