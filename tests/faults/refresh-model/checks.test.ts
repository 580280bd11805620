import { describe, expect, it } from 'bun:test';
import { RequestTrace } from '../../../src/gateway/trace/request-trace.ts';
import { checks } from './checks.ts';
import { Facts } from './facts.ts';
import { History, type Request, type Send, type SignOut, type Token } from './history.ts';
import type { Moment } from './virtual-time.ts';

/** The time of a moment in milliseconds; its order is that in which it is made. */
type At = number;

/** Writes down what did not happen, so that a check has something to object to. */
class Story {
  readonly history = new History(900_000);
  readonly family = { number: 0, revoked: undefined as Moment | undefined };
  readonly first = this.#issue('t0.0', undefined);
  #order = 0;

  at(ms: At): Moment {
    return { at: ms, order: ++this.#order };
  }

  /** A refresh with its request, over at once. */
  renewed(token: Token, ms: At): { send: Send; request: Request; pair: Token } {
    const request = this.request(token, ms);
    const send = this.send(token, ms);
    const pair = this.#issue(`t0.${token.generation + 1}`, token, ms);
    Object.assign(send, {
      arrived: this.at(ms),
      verdict: 'renewed',
      successor: pair,
      ended: this.at(ms),
      outcome: 'renewed',
    });
    this.ends(request, ms, 'renewed', pair);
    return { send, request, pair };
  }

  send(token: Token, ms: At): Send {
    const send: Send = {
      token,
      instance: 'A1',
      sent: this.at(ms),
      arrived: undefined,
      verdict: undefined,
      successor: undefined,
      ended: undefined,
      outcome: undefined,
    };
    this.history.sends.push(send);
    return send;
  }

  rejected(token: Token, ms: At): void {
    const send = this.send(token, ms);
    Object.assign(send, {
      arrived: this.at(ms),
      verdict: 'rejected',
      ended: this.at(ms),
      outcome: 'rejected',
    });
  }

  request(token: Token, ms: At, asksAt = ms): Request {
    const request: Request = {
      token,
      instance: 'A1',
      arrived: this.at(ms),
      asked: this.at(asksAt),
      ended: undefined,
      outcome: undefined,
      pair: undefined,
      leaves: undefined,
      given: undefined,
      trace: new RequestTrace(new globalThis.Request('http://gateway.test')),
      isLost: false,
    };
    this.history.presentations.push({ token, instance: 'A1', moment: request.arrived });
    this.history.requests.push(request);
    return request;
  }

  ends(request: Request, ms: At, outcome: Request['outcome'], pair?: Token): Request {
    return Object.assign(request, { ended: this.at(ms), outcome, pair });
  }

  signOut(token: Token, ms: At): SignOut {
    const signOut = { token, instance: 'A1', began: this.at(ms), ended: this.at(ms), isOver: true };
    this.history.signOuts.push(signOut);
    return signOut;
  }

  #issue(text: string, before: Token | undefined, ms = 0, family = this.family): Token {
    const generation = before ? before.generation + 1 : 0;
    const token = { text, family, before, generation, issued: { at: ms, order: 0 } };
    this.history.tokens.push(token);
    return token;
  }

  issuedAgain(text: string, ms: At): Token {
    const token = this.#issue(text, undefined, ms, { number: 1, revoked: undefined });
    this.history.signIns.push({ token, instance: 'A1', isAgain: true, ended: this.at(ms) });
    return token;
  }
}

/** For each sentence a history that contradicts it. */
const CONTRADICTIONS: Readonly<Record<keyof typeof checks, (story: Story) => void>> = {
  'every request ends, and leaves no timer behind': ({ history }) => {
    history.timersLeft = 1;
  },
  'a refresh token is sent to the upstream once': (story) => {
    story.renewed(story.first, 0);
    const again = story.request(story.first, 100);
    story.rejected(story.first, 100);
    story.ends(again, 100, 'rejected');
  },
  'a pair whose access token is good is not renewed by a request with an older token': (story) => {
    const { pair } = story.renewed(story.first, 0);
    story.request(story.first, 1000);
    story.send(pair, 1000);
  },
  'a spent token yields the newest pair of its chain while its window is open': (story) => {
    story.renewed(story.first, 0);
    story.ends(story.request(story.first, 59_000), 59_000, 'ended');
  },
  'a spent token reaches the upstream when its window is closed': (story) => {
    const { pair } = story.renewed(story.first, 0);
    story.request(pair, 1000);
    story.ends(story.request(story.first, 11_500), 11_500, 'renewed', pair);
  },
  'a spent token that is sent to the upstream is counted as a reuse': (story) => {
    story.renewed(story.first, 0);
    story.rejected(story.first, 70_000);
  },
  'only what was sent again is counted as a reuse': (story) => {
    story.renewed(story.first, 0).request.trace.refreshTokenReused = 'late';
  },
  'a request is rejected only after the upstream has rejected its token or its family': (story) => {
    story.ends(story.request(story.first, 0), 0, 'rejected');
  },
  'a request is ended only after a sign-out, or a sign-in in its place': (story) => {
    story.ends(story.request(story.first, 0), 0, 'ended');
  },
  'no request finds the upstream unreachable that has responded': (story) => {
    story.renewed(story.first, 0);
    story.ends(story.request(story.first, 100), 100, 'unreachable');
  },
  'after a sign-out no token of the chain yields a pair': (story) => {
    const { pair } = story.renewed(story.first, 0);
    story.signOut(pair, 100);
    story.ends(story.request(story.first, 200), 200, 'renewed', pair);
  },
  'after a sign-out the very token yields no pair at the same instance, with Redis or without': (story) => {
    story.history.outages.push({ instance: 'A', began: story.at(0), ended: undefined });
    story.signOut(story.first, 100);
    story.renewed(story.first, 200);
  },
  'a pair that arrives after the sign-out is given to nobody': (story) => {
    story.signOut(story.first, 100);
    story.renewed(story.first, 200);
  },
  'a pair that arrives after the sign-out is signed out at the upstream': (story) => {
    story.signOut(story.first, 100);
    story.renewed(story.first, 200);
  },
  'a response that leaves after the sign-out sets no cookies': (story) => {
    const { request, pair } = story.renewed(story.first, 0);
    story.signOut(pair, 100);
    Object.assign(request, { leaves: story.at(200), given: pair });
  },
  'nobody waits longer than a sign-in may take while the upstream is not being asked': (story) => {
    story.ends(story.request(story.first, 0), 9000, 'unreachable');
  },
  'a token that a sign-in has issued again works': (story) => {
    const again = story.issuedAgain('t0.0', 100);
    story.ends(story.request(again, 200), 200, 'renewed', story.first);
  },
};

describe.each(Object.entries(checks))('the check that %s', (sentence, check) => {
  it('finds nothing in a session that is renewed', () => {
    const story = new Story();
    story.renewed(story.renewed(story.first, 0).pair, 900_000);
    expect(check(new Facts(story.history))).toEqual([]);
  });

  it('finds what contradicts it', () => {
    const story = new Story();
    CONTRADICTIONS[sentence]?.(story);
    expect(check(new Facts(story.history))).toHaveLength(1);
  });
});
