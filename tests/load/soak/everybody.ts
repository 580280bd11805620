/** Everybody who uses a gateway at once: visitors, authors, slow readers, users who go away, and newcomers. */

import { wavSize } from '../../../src/demo/sandbox/audio/wav.ts';
import { ORDER } from '../../support/sandbox-account.ts';
import { User } from '../../support/simulated-users.ts';
import type { VirtualMachine } from '../../support/virtual-machine.ts';
import { Problems } from './outcome.ts';

/** How many there are of each. */
export interface Attendance {
  readonly visitors: number;
  readonly authors: number;
  readonly slowReaders: number;
  readonly hurried: number;
  readonly newcomers: number;
  /** What slow readers read, in milliseconds. */
  readonly longTrackMs: number;
}

/** What somebody does over and over. Throws when the response is not what it should be. */
type Habit = () => Promise<void>;

const ORDER_OF_AUTHORS = { ...ORDER, music_length_ms: 12_000 };
const TRACK_BYTES = wavSize(ORDER_OF_AUTHORS.music_length_ms);
const READER_BYTES_PER_SECOND = 300_000;
const MOST_PAUSE_MS = 500;
/** Signs in and out again and again. */
const NEWCOMER = 'newcomer';
const NEWCOMER_PAUSE_MS = 4000;
/** The hurried have gone by then; most responses take longer, and some do not. */
const MOST_PATIENCE_MS = 30;

export class Everybody implements AsyncDisposable {
  /** How many rounds of requests had the right responses, and how many had not although nobody is to blame, by kind. */
  readonly served = new Map<string, number>();
  readonly excused = new Map<string, number>();
  readonly problems = new Problems();
  signedOut = 0;
  /** Generations that were ordered; each may become one creation. */
  orders = 0;
  readonly #machine: VirtualMachine;
  readonly #habits: Promise<void>[] = [];
  readonly #isOver = new AbortController();
  #checkMs: number[] = [];
  /** What fails while somebody has an excuse, or has had one since it began, is not the gateway's fault. */
  #excuses = 0;
  #lastExcuseAt = 0;

  private constructor(machine: VirtualMachine) {
    this.#machine = machine;
  }

  static async arrive(machine: VirtualMachine, attendance: Attendance): Promise<Everybody> {
    const everybody = new Everybody(machine);
    const { visitors, authors, slowReaders, hurried, newcomers, longTrackMs } = attendance;
    const order = { ...ORDER, music_length_ms: longTrackMs };
    const listener = await User.signIn(machine, 'Listener');
    everybody.orders++;
    const track = await listener.generate(order);
    const creationId = track.headers.get('x-music-creation-id') ?? '';
    const { byteLength } = await track.bytes();
    await everybody.#keep(visitors, 'visitor', (user) => everybody.#visit(user));
    await everybody.#keep(authors, 'author', (user) => everybody.#write(user));
    await everybody.#keep(hurried, 'hurried', (user) => everybody.#hurry(user));
    await everybody.#keep(newcomers, NEWCOMER, (user) => everybody.#comeAndGo(user));
    for (let index = 0; index < slowReaders; index++) {
      // In another browser, and so in another session of the same account.
      const user = await User.signIn(machine, listener.name);
      everybody.#repeat('slow reader', user, () => everybody.#readSlowly(user, creationId, byteLength));
    }
    return everybody;
  }

  /** Excuses every failure from now on until the returned function is called. */
  excuse(): () => void {
    this.#excuses++;
    return () => {
      this.#excuses--;
      this.#lastExcuseAt = performance.now();
    };
  }

  /** How long the session checks since the last call took, in milliseconds. */
  takeCheckMs(): number[] {
    const taken = this.#checkMs;
    this.#checkMs = [];
    return taken;
  }

  async leave(): Promise<void> {
    this.#isOver.abort();
    await Promise.all(this.#habits);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.leave();
  }

  /** Lets so many users sign in, each of whom then keeps to a habit. */
  async #keep(count: number, kind: string, habit: (user: User) => Promise<void>): Promise<void> {
    for (let index = 0; index < count; index++) {
      const user = await User.signIn(this.#machine, `${kind} ${index}`);
      this.#repeat(kind, user, () => habit(user));
    }
  }

  #repeat(kind: string, user: User, habit: Habit): void {
    const repeat = async () => {
      while (!this.#isOver.signal.aborted) {
        const begunAt = performance.now();
        await habit().then(
          () => count(this.served, kind),
          (error) => this.#failed(kind, begunAt, error),
        );
        if (!user.isSignedIn && kind !== NEWCOMER) await this.#lost(kind, user);
        await Bun.sleep(Math.random() * MOST_PAUSE_MS);
      }
    };
    this.#habits.push(repeat());
  }

  #failed(kind: string, begunAt: number, error: unknown): void {
    const isExcused = this.#excuses || this.#lastExcuseAt > begunAt;
    if (isExcused) count(this.excused, kind);
    else
      this.problems.add(
        `${kind} at ${new Date().toISOString()}: ${error instanceof Error ? error.message : error}`,
      );
  }

  /** Nothing excuses that somebody is signed out. */
  async #lost(kind: string, user: User): Promise<void> {
    this.signedOut++;
    this.problems.add(`${kind} was signed out at ${new Date().toISOString()}`);
    await user.signIn().catch(() => Bun.sleep(MOST_PAUSE_MS));
  }

  async #visit(user: User): Promise<void> {
    const begunAt = performance.now();
    await expectText(await user.request('/api/auth/session'), `"${user.name}"`);
    this.#checkMs.push(performance.now() - begunAt);
    await expectText(await user.request('/api/music/models'), 'sandbox-music-1');
    await expectText(await user.request('/api/upstream/v1/music/creations'), '"data"');
  }

  async #write(user: User): Promise<void> {
    this.orders++;
    const response = await user.generate(ORDER_OF_AUTHORS);
    const { byteLength } = await response.bytes();
    if (response.status !== 200 || byteLength !== TRACK_BYTES)
      throw new Error(`${response.status}, ${byteLength} bytes`);
  }

  async #readSlowly(user: User, creationId: string, bytes: number): Promise<void> {
    const response = await user.listen(creationId);
    if (response.status !== 200 || !response.body) throw new Error(`status ${response.status}`);
    let read = 0;
    for await (const chunk of response.body) {
      read += chunk.byteLength;
      if (this.#isOver.signal.aborted) return;
      await Bun.sleep((chunk.byteLength / READER_BYTES_PER_SECOND) * 1000);
    }
    if (read !== bytes) throw new Error(`${read} of ${bytes} bytes`);
  }

  /** Goes away while a response is on its way, and then wants to know whether it is still signed in. */
  async #hurry(user: User): Promise<void> {
    const signal = AbortSignal.timeout(Math.ceil(Math.random() * MOST_PATIENCE_MS));
    const paths = ['/api/auth/session', '/api/music/models', '/api/upstream/v1/billing/balance'];
    const path = paths[Math.floor(Math.random() * paths.length)] ?? '';
    await user
      .request(path, { signal })
      .then((response) => response.bytes())
      .catch(() => undefined);
    await expectText(await user.request('/api/auth/session'), `"${user.name}"`);
  }

  async #comeAndGo(user: User): Promise<void> {
    // HAProxy allows an address two sign-ins and sign-outs a second, and everybody has the same one.
    await Bun.sleep(NEWCOMER_PAUSE_MS);
    await user.signIn();
    await expectText(await user.request('/api/auth/session'), `"${user.name}"`);
    await expectText(await user.signOut(), '"ok":true');
    await expectText(await user.request('/api/auth/session'), '{"authenticated":false}');
  }
}

async function expectText(response: Response, part: string): Promise<void> {
  const text = await response.text();
  if (response.status !== 200 || !text.includes(part))
    throw new Error(`${response.status} ${text.slice(0, 120)}`);
}

function count(counts: Map<string, number>, kind: string): void {
  counts.set(kind, (counts.get(kind) ?? 0) + 1);
}
