/** Everybody who uses a gateway at once, each of whom keeps to a habit until all of them leave. */

import { eventually } from '../support/eventually.ts';
import { ORDER } from '../support/sandbox-account.ts';
import { openSocket, requestOf } from './raw-client.ts';
import { Problems } from './report.ts';
import { type Service, User } from './user.ts';

type Kind = (typeof KINDS)[number];
/** How many there are of each. */
export type Attendance = Readonly<Partial<Record<Kind, number>>>;
/** What somebody does over and over. Throws when a response is not what it should be. */
type Habit = (user: User, crowd: Crowd) => Promise<void>;

const KINDS = ['checker', 'visitor', 'author', 'slowReader', 'hurried'] as const;
const LIBRARY = '/api/upstream/v1/music/creations';
const READER_BYTES_PER_SECOND = 300_000;
const MOST_PAUSE_MS = 500;
/** The hurried have gone by then; most responses take longer, and some do not. */
const MOST_PATIENCE_MS = 30;
/** For a busy machine, on which two dozen users take turns. */
const DEADLINE_MS = 60_000;

const HABITS: Readonly<Record<Kind, Habit>> = {
  /** Has no pause. */
  async checker(user) {
    await expectText(user.request('/api/auth/session'), `"${user.name}"`);
  },
  async visitor(user) {
    await expectText(user.request('/api/auth/session'), `"${user.name}"`);
    await expectText(user.request('/api/music/models'), 'sandbox-music-1');
    await expectText(user.request(LIBRARY), '"data"');
  },
  /** Gets what was generated a second time from the library, the same bytes. */
  async author(user, crowd) {
    const { id, audio } = await crowd.order(user, 12_000);
    const kept = await user.request(`${LIBRARY}/${id}/content`);
    if (!Buffer.from(await kept.bytes()).equals(audio)) throw new Error('other bytes in the library');
  },
  async slowReader(user, crowd) {
    const { track } = crowd;
    const response = await user.request(`${LIBRARY}/${track.id}/content`);
    if (response.status !== 200 || !response.body) throw new Error(`status ${response.status}`);
    let read = 0;
    for await (const chunk of response.body) {
      if (crowd.isOver) return;
      const expected = track.audio.subarray(read, read + chunk.byteLength);
      if (!expected.equals(chunk)) throw new Error('other bytes than were generated');
      read += chunk.byteLength;
      await Bun.sleep((chunk.byteLength / READER_BYTES_PER_SECOND) * 1000);
    }
    if (read !== track.audio.length) throw new Error(`${read} bytes of ${track.audio.length}`);
  },
  /** Goes away in the midst of a request or of its response, and then wants to know whether it is still signed in. */
  async hurried(user, { service: { base }, track }) {
    const patienceMs = Math.ceil(Math.random() * MOST_PATIENCE_MS);
    const paths = ['/api/auth/session', '/api/music/models', LIBRARY, `${LIBRARY}/${track.id}/content`];
    const path = paths[Math.floor(Math.random() * paths.length)] ?? '';
    const socket = openSocket(base);
    socket.write(requestOf('POST /api/music/generate', {}, '{"model"').slice(0, -patienceMs));
    await user
      .request(path, { signal: AbortSignal.timeout(patienceMs) })
      .then((response) => response.bytes())
      .catch(() => undefined);
    socket.destroy();
    await expectText(user.request('/api/auth/session'), `"${user.name}"`);
  },
};

export class Crowd implements AsyncDisposable {
  readonly problems = new Problems();
  /** How many rounds of requests each user had the right responses. */
  readonly rounds: number[] = [];
  /** Generations that were ordered; each may become one creation. */
  orders = 0;
  readonly service: Service;
  /** What slow and hurried users read. */
  track = { id: '', audio: Buffer.alloc(0) };
  isOver = false;
  readonly #habits: Promise<void>[] = [];
  /** What fails while somebody has an excuse, or has had one since it began, is not the gateway's fault. */
  #excuses = 0;
  #lastExcuseAt = 0;

  private constructor(service: Service) {
    this.service = service;
  }

  /** @param trackMs the length of what slow and hurried users read; nothing is generated without it */
  static async arrive(service: Service, attendance: Attendance, trackMs?: number): Promise<Crowd> {
    const crowd = new Crowd(service);
    if (trackMs) crowd.track = await crowd.order(await User.signIn(service, 'slowReader'), trackMs);
    for (const kind of KINDS) {
      for (let index = 0; index < (attendance[kind] ?? 0); index++) {
        // Slow readers have many browsers, and so sessions, of one account.
        const user = await User.signIn(service, kind === 'slowReader' ? kind : `${kind} ${index}`);
        crowd.#habits.push(crowd.#repeat(kind, user));
      }
    }
    return crowd;
  }

  /** Has music generated. */
  async order(author: User, lengthMs: number): Promise<Crowd['track']> {
    this.orders++;
    const order = { ...ORDER, music_length_ms: lengthMs };
    const response = await author.post('/api/music/generate', order);
    const audio = Buffer.from(await response.bytes());
    if (response.status !== 200) throw new Error(`${response.status}, ${audio.length} bytes`);
    return { id: response.headers.get('x-music-creation-id') ?? '', audio };
  }

  /** Excuses every failure until the work is done. */
  async excuse(work: () => Promise<unknown>): Promise<void> {
    this.#excuses++;
    await work().finally(() => {
      this.#excuses--;
      this.#lastExcuseAt = performance.now();
    });
  }

  /** Waits until everybody has had this many more rounds of right responses. */
  async goesOn(rounds: number): Promise<void> {
    const targets = this.rounds.map((count) => count + rounds);
    const areReached = () => this.rounds.every((count, index) => count >= (targets[index] ?? 0));
    await this.until(areReached, `${rounds} more rounds of everybody`);
  }

  /**
   * Lets every access token expire, this many times, and waits for the rounds that follow. No refresh may be under way
   * at the start: a token that expires between its refresh and the call that follows is a 401 of the upstream's.
   */
  async renews(times: number): Promise<void> {
    for (let time = 0; time < times; time++) {
      this.service.sandbox.upstream.expireAccessTokens();
      await this.goesOn(3);
    }
  }

  /** Like `eventually`, but gives up as soon as something is wrong. */
  async until(condition: () => boolean, what: string): Promise<void> {
    const checked = () => {
      if (this.problems.size) throw new Error(this.problems.list().join('\n'));
      return condition();
    };
    await eventually(checked, what, DEADLINE_MS);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.isOver = true;
    await Promise.all(this.#habits);
  }

  async #repeat(kind: Kind, user: User): Promise<void> {
    const index = this.rounds.push(0) - 1;
    while (!this.isOver) {
      const begunAt = performance.now();
      try {
        await HABITS[kind](user, this);
        this.rounds[index] = (this.rounds[index] ?? 0) + 1;
      } catch (error) {
        if (!this.#excuses && this.#lastExcuseAt < begunAt)
          this.problems.add(`${kind} at ${new Date().toISOString()}: ${error}`);
      }
      if (!user.isSignedIn) {
        // Nothing excuses that somebody is signed out.
        this.problems.add(`${kind} was signed out at ${new Date().toISOString()}`);
        await user.signIn().catch(() => undefined);
      }
      if (kind !== 'checker') await Bun.sleep(Math.random() * MOST_PAUSE_MS);
    }
  }
}

async function expectText(sent: Promise<Response>, part: string): Promise<void> {
  const response = await sent;
  const text = await response.text();
  if (response.status !== 200 || !text.includes(part))
    throw new Error(`${response.status} ${text.slice(0, 120)}`);
}
