import { describe, expect, it } from 'bun:test';
import { checks, violationsIn } from './checks.ts';
import { Facts } from './facts.ts';
import { History, type Moment, type Request, type Token } from './history.ts';

/** A history that never happened, so that a check has something to object to. Times are in milliseconds. */
class Story {
  #now = 0;
  readonly history = new History(900_000, () => this.#now);
  readonly first = this.history.issue({ number: 0, revoked: undefined }, undefined);

  at(ms: number): Moment {
    this.#now = ms;
    return this.history.moment('');
  }

  request(token: Token, ms: number, outcome?: Request['outcome'], pair?: Token): Request {
    this.#now = ms;
    const request = this.history.request({ token, instance: 'A1' });
    request.asked = this.at(ms);
    return Object.assign(request, outcome && { ended: this.at(ms), outcome }, pair && { pair });
  }

  send(token: Token, ms: number) {
    this.#now = ms;
    return this.history.send({ token, instance: 'A1' });
  }

  /** The upstream refuses a token that was sent again. */
  rejected(token: Token, ms: number): void {
    const end = { verdict: 'rejected', outcome: 'rejected' };
    Object.assign(this.send(token, ms), { arrived: this.at(ms), ended: this.at(ms), ...end });
  }

  /** A refresh with its request, over at once. */
  renewed(token: Token, ms: number): { request: Request; pair: Token } {
    const request = this.request(token, ms);
    const send = this.send(token, ms);
    const arrived = this.at(ms);
    const pair = this.history.issue(token.family, token);
    const end = { ended: this.at(ms), outcome: 'renewed' } as const;
    Object.assign(send, { arrived, verdict: 'renewed', successor: pair, ...end });
    return { request: Object.assign(request, { ...end, ended: this.at(ms), pair }), pair };
  }

  signOut(token: Token, ms: number): void {
    this.#now = ms;
    this.history.signOut({ token, instance: 'A1' }).ended = this.at(ms);
  }
}

/** For each sentence, a history that contradicts it. */
const CONTRADICTIONS: Readonly<Record<string, (story: Story) => unknown>> = {
  'every request ends, and leaves no timer behind': ({ history }) => {
    history.timersLeft = 1;
  },
  'a refresh token is sent to the upstream once': (story) => {
    story.renewed(story.first, 0);
    story.rejected(story.first, 100);
  },
  'an instance sends a token once, with Redis or without': (story) => {
    story.history.outages.push({ began: story.at(0) });
    story.renewed(story.first, 0);
    story.rejected(story.first, 100);
  },
  'a pair whose access token is good is not renewed by a request with an older token': (story) =>
    story.send(story.renewed(story.first, 0).pair, 1000),
  'a spent token yields the newest pair of its chain while its window is open': (story) => {
    story.renewed(story.first, 0);
    story.request(story.first, 59_000, 'ended');
  },
  'a spent token reaches the upstream when its window is closed': (story) => {
    const { pair } = story.renewed(story.first, 0);
    story.request(pair, 1000);
    story.request(story.first, 11_500, 'renewed', pair);
  },
  'a spent token that is sent to the upstream is counted as a reuse': (story) => {
    story.renewed(story.first, 0);
    story.rejected(story.first, 70_000);
  },
  'only what was sent again is counted as a reuse': (story) => {
    story.renewed(story.first, 0).request.record.refreshTokenReused = 'late';
  },
  'a request is rejected only after the upstream has rejected its token or its family': (story) =>
    story.request(story.first, 0, 'rejected'),
  'a request is ended only after a sign-out, or a sign-in in its place': (story) =>
    story.request(story.first, 0, 'ended'),
  'no request finds the upstream unreachable that has responded': (story) => {
    story.renewed(story.first, 0);
    story.request(story.first, 100, 'unreachable');
  },
  'after a sign-out no token of the chain yields a pair': (story) => {
    const { pair } = story.renewed(story.first, 0);
    story.signOut(pair, 100);
    story.request(story.first, 200, 'renewed', pair);
  },
  'after a sign-out the very token yields no pair at the same instance, with Redis or without': (story) => {
    story.history.outages.push({ began: story.at(0) });
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
  'a response sets the newest pair that a request of its instance has had, or none': (story) => {
    const { request, pair } = story.renewed(story.first, 0);
    story.renewed(pair, 100);
    Object.assign(request, { leaves: story.at(200), given: pair });
  },
  'nobody waits longer than a sign-in may take while the upstream is not being asked': (story) =>
    Object.assign(story.request(story.first, 0), { ended: story.at(9000), outcome: 'unreachable' }),
  'a token that a sign-in has issued again works': (story) => {
    const { history, first } = story;
    const token = history.issue({ number: 1, revoked: undefined }, undefined, first.text);
    history.signIns.push({ token, instance: 'A1', isAgain: true, ended: story.at(100) });
    story.request(token, 200, 'renewed', first);
  },
};

describe('the checks of the refresh model', () => {
  it('find nothing wrong with a session that is renewed', () => {
    const story = new Story();
    story.renewed(story.renewed(story.first, 0).pair, 900_000);
    expect(violationsIn(new Facts(story.history))).toEqual([]);
  });

  it.each(Object.entries(checks))('find what contradicts "%s"', (sentence, check) => {
    const story = new Story();
    CONTRADICTIONS[sentence]?.(story);
    expect(check(new Facts(story.history))).toHaveLength(1);
  });
});
