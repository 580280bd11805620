import { describe, expect, it } from 'bun:test';
import { checks, violationsIn } from './checks.ts';
import { History, type Moment, type Request, type Token } from './history.ts';

/** A history that never happened, so that a check has something to object to. Times are in milliseconds. */
class Story {
  readonly #time = { now: 0 };
  readonly history = new History(this.#time, 900_000);
  readonly first = this.history.issue('t0');

  at(ms: number): Moment {
    this.#time.now = ms;
    return this.history.moment('');
  }

  request(ms: number, outcome: Request['outcome'], pair?: Token, token = this.first): Request {
    const asked = this.at(ms);
    const request = this.history.request({ token, instance: 'A1' });
    return Object.assign(request, { asked, ended: this.at(ms), outcome }, pair && { pair });
  }

  /** The upstream refuses a token that was sent again. */
  rejected(ms: number, token = this.first): void {
    const arrived = this.at(ms);
    Object.assign(this.history.send({ token, instance: 'A1' }), {
      arrived,
      ended: arrived,
      outcome: 'rejected',
    });
  }

  /** A refresh with its request, over at once. */
  renewed(ms: number, token = this.first) {
    const pair = this.history.issue(token);
    const request = this.request(ms, 'renewed', pair, token);
    const [send, arrived] = [this.history.send({ token, instance: 'A1' }), this.at(ms)];
    Object.assign(send, { arrived, successor: pair, ended: this.at(ms), outcome: 'renewed' });
    return { pair, request: Object.assign(request, { ended: this.at(ms) }) };
  }

  signOut(ms: number, token = this.first): void {
    this.at(ms);
    this.history.signOut({ token, instance: 'A1' }).ended = this.at(ms);
  }
}

function sentTwice(story: Story): void {
  story.renewed(0);
  story.rejected(70_000);
}

/** For each sentence, in their order, histories that contradict it. */
const CONTRADICTIONS: readonly ((story: Story) => unknown)[][] = [
  [
    ({ history }) => Object.assign(history, { timersLeft: 1 }),
    ({ history }) => Object.assign(history, { stuck: 'it never ends' }),
  ],
  [
    sentTwice,
    (story) => {
      story.history.outages.push({ began: story.at(0) });
      sentTwice(story);
    },
  ],
  [(story) => story.rejected(1000, story.renewed(0).pair)],
  [
    (story) => {
      story.renewed(0);
      story.request(59_000, 'ended');
    },
    (story) => {
      const { pair } = story.renewed(0);
      const early = story.request(0, 'renewed', pair);
      story.renewed(5000, pair);
      Object.assign(early, { asked: story.at(6000), ended: story.at(6000) });
    },
  ],
  [
    (story) => {
      const { pair } = story.renewed(0);
      story.request(1000, 'renewed', undefined, pair);
      story.request(11_500, 'renewed', pair);
    },
  ],
  [sentTwice],
  [(story) => Object.assign(story.renewed(0).request.record, { refreshTokenReused: 'late' })],
  [(story) => story.request(0, 'rejected')],
  [(story) => story.request(0, 'ended')],
  [
    (story) => {
      story.renewed(0);
      story.request(100, 'unreachable');
    },
  ],
  [
    (story) => {
      const { pair } = story.renewed(0);
      story.signOut(100, pair);
      story.request(200, 'renewed', pair);
    },
    (story) => {
      story.history.outages.push({ began: story.at(0) });
      story.signOut(100);
      story.request(200, 'renewed');
    },
  ],
  [
    (story) => {
      story.signOut(100);
      story.renewed(200);
    },
  ],
  [
    (story) => {
      const { request, pair } = story.renewed(0);
      story.signOut(100, pair);
      Object.assign(request, { leaves: story.at(200), given: pair });
    },
    (story) => {
      const { request, pair } = story.renewed(0);
      story.renewed(100, pair);
      Object.assign(request, { leaves: story.at(200), given: pair });
    },
  ],
  [(story) => Object.assign(story.request(0, 'unreachable'), { ended: story.at(9000) })],
];

describe('the checks of the refresh model', () => {
  it('find nothing wrong with a session that is renewed', () => {
    const story = new Story();
    story.renewed(900_000, story.renewed(0).pair);
    expect(violationsIn(story.history)).toEqual([]);
  });

  it.each(Object.keys(checks).map((sentence, index) => [sentence, CONTRADICTIONS[index] ?? []] as const))(
    'find what contradicts "%s"',
    (sentence, contradictions) => {
      expect(contradictions).not.toBeEmpty();
      for (const contradict of contradictions) {
        const story = new Story();
        contradict(story);
        expect(checks[sentence]?.(story.history)).toHaveLength(1);
      }
    },
  );
});
