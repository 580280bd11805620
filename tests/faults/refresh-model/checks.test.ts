import { describe, expect, it } from 'bun:test';
import { checks, violationsIn } from './checks.ts';
import { History, type Moment, type Request, type Token } from './history.ts';

/** A history that never happened, so that a check has something to object to. Times are in milliseconds. */
class Story {
  readonly #time = { now: 0 };
  readonly history = new History(this.#time, 900_000);
  /** Of one session, by generation. */
  readonly #tokens: Token[] = [this.history.issue('t0')];

  at(ms: number): Moment {
    this.#time.now = ms;
    return this.history.moment('');
  }

  #place(generation: number) {
    const token = this.#tokens[generation];
    if (!token) throw new Error('it was never issued');
    return { token, instance: 'A1' };
  }

  request(ms: number, generation: number, outcome: Request['outcome'], end: Partial<Request> = {}): this {
    const asked = this.at(ms);
    const request = this.history.request(this.#place(generation));
    Object.assign(request, { asked, outcome, ended: this.at(ms), ...end });
    return this;
  }

  /** A refresh with its request, over at once. */
  renewed(ms: number, generation = 0, end: Partial<Request> = {}): this {
    const { token } = this.#place(generation);
    const pair = this.history.issue(token);
    this.#tokens.push(pair);
    this.request(ms, generation, 'renewed', { pair, ...end });
    const send = this.history.send(this.#place(generation));
    Object.assign(send, { arrived: this.at(ms), successor: pair, ended: this.at(ms), outcome: 'renewed' });
    return this;
  }

  /** The upstream refuses a token that was sent again. */
  rejected(ms: number, generation = 0): this {
    this.at(ms);
    Object.assign(this.history.send(this.#place(generation)), { ended: this.at(ms), outcome: 'rejected' });
    return this;
  }

  signOut(ms: number, generation = 0): this {
    this.at(ms);
    this.history.signOut(this.#place(generation)).ended = this.at(ms);
    return this;
  }

  withoutRedis(): this {
    this.history.outages.push({ began: this.at(0) });
    return this;
  }

  /** The response to the first request brings the pair of this generation. */
  given(ms: number, generation: number): this {
    const given = this.#tokens[generation];
    Object.assign(this.history.requests[0] ?? {}, { leaves: this.at(ms), given });
    return this;
  }
}

/** For each sentence, in their order, histories that contradict it. */
const CONTRADICTIONS: readonly ((story: Story) => unknown)[][] = [
  [
    ({ history }) => Object.assign(history, { timersLeft: 1 }),
    ({ history }) => Object.assign(history, { stuck: 'it never ends' }),
  ],
  [(story) => story.renewed(0).rejected(70_000), (story) => story.withoutRedis().renewed(0).rejected(70_000)],
  [(story) => story.renewed(0).rejected(1000, 1)],
  [
    (story) => story.renewed(0).request(59_000, 0, 'ended'),
    // It arrived before the second refresh, and asked after it.
    (story) => {
      const [first, early] = story.renewed(0).request(0, 0, 'renewed').renewed(5000, 1).history.requests;
      const asked = story.at(6000);
      Object.assign(early ?? {}, { asked, ended: story.at(6000), pair: first?.pair });
    },
  ],
  [(story) => story.renewed(0).request(1000, 1, 'renewed').request(11_500, 0, 'renewed')],
  [(story) => story.renewed(0).rejected(70_000)],
  [
    (story) =>
      Object.assign(story.renewed(0).history.requests[0]?.record ?? {}, { refreshTokenReused: 'late' }),
  ],
  [(story) => story.request(0, 0, 'rejected')],
  [(story) => story.request(0, 0, 'ended')],
  [(story) => story.renewed(0).request(100, 0, 'unreachable')],
  [
    (story) => story.renewed(0).signOut(100, 1).request(200, 1, 'renewed'),
    (story) => story.withoutRedis().signOut(100).request(200, 0, 'renewed'),
  ],
  [(story) => story.signOut(100).renewed(200)],
  [
    (story) => story.renewed(0).signOut(100, 1).given(200, 1),
    (story) => story.renewed(0).renewed(100, 1).given(200, 1),
  ],
  [(story) => story.request(0, 0, 'unreachable', { ended: story.at(9000) })],
];

describe('the checks of the refresh model', () => {
  it('find nothing wrong with a session that is renewed', () => {
    expect(violationsIn(new Story().renewed(0).renewed(900_000, 1).history)).toEqual([]);
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
