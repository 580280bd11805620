/** One of the users that send mixed requests: keeps its cookies, and breaks off now and then. */

import { type Answer, type ClientRequest, Connection } from './connection.ts';
import { type Planned, plan } from './mixed-kinds.ts';
import type { Problems } from './outcome.ts';
import type { Random } from './random.ts';
import { cookies, firstCookies } from './rotating-sessions.ts';

/** What all clients have seen together. */
export interface Tally {
  sent: number;
  cut: number;
  /** Cut, but the answer had come. */
  cutTooLate: number;
  refreshed: number;
  readonly statuses: Map<number, number>;
  /** Of checks of a session that were not cut, in milliseconds. */
  readonly checks: number[];
}

/** Of a hundred; a third of them are answered too soon. With the unanswered ones a tenth is left. */
const CUT = 9;
const LONGEST_WAIT_MS = 6;

export class MixedClient {
  readonly #url: string;
  readonly #user: string;
  readonly #random: Random;
  readonly #tally: Tally;
  readonly #problems: Problems;
  #cookie: string;
  #connection: Connection | undefined;

  constructor(url: string, user: string, random: Random, tally: Tally, problems: Problems) {
    this.#url = url;
    this.#user = user;
    this.#random = random;
    this.#tally = tally;
    this.#problems = problems;
    this.#cookie = firstCookies(user);
  }

  async sendOne(): Promise<void> {
    const planned = plan(this.#random, { user: this.#user, cookie: this.#cookie });
    if (!this.#connection?.isOpen) this.#connection = await Connection.open(this.#url);
    this.#tally.sent++;
    if (planned.isUnanswered || this.#random.below(100) < CUT)
      await this.#sendAndCut(this.#connection, planned);
    else await this.#sendAndJudge(this.#connection, planned);
  }

  close(): void {
    this.#connection?.cut();
  }

  async #sendAndJudge(connection: Connection, planned: Planned): Promise<void> {
    const { request } = planned;
    const before = performance.now();
    try {
      const answer = await connection.send(request);
      if (isSessionCheck(request)) this.#tally.checks.push(performance.now() - before);
      this.#judge(planned, answer);
    } catch (error) {
      this.#problems.add(`${request.method} ${request.path}: ${error}`);
    }
  }

  #judge({ request, status, isRight }: Planned, answer: Answer): void {
    this.#count(answer);
    if (answer.status !== status || !isRight(answer)) {
      const body = answer.body.toString('latin1', 0, 100);
      this.#problems.add(`${request.method} ${request.path}: ${answer.status} instead of ${status}: ${body}`);
    }
  }

  #count(answer: Answer): void {
    const { statuses } = this.#tally;
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
    const [access, refresh] = answer.headers.getSetCookie().map((each) => /^\w+=([^;]+)/.exec(each)?.[1]);
    if (access === undefined || refresh === undefined) return;
    this.#tally.refreshed++;
    this.#cookie = cookies(access, refresh);
  }

  /** In the middle of the request, while it waits, or in the middle of the answer. */
  async #sendAndCut(connection: Connection, planned: Planned): Promise<void> {
    this.#tally.cut++;
    const moment = planned.isUnanswered ? 'waiting' : this.#random.pick(['sending', 'waiting', 'reading']);
    if (moment === 'sending') await this.#cutWhileSending(connection, planned.request);
    else await this.#cutLater(connection, planned, moment);
    this.#end(connection);
  }

  async #cutWhileSending(connection: Connection, request: ClientRequest): Promise<void> {
    const bytes = connection.bytesOf(request);
    connection.write(bytes.subarray(0, 1 + this.#random.below(bytes.length - 1)));
    await Bun.sleep(this.#random.below(LONGEST_WAIT_MS));
  }

  async #cutLater(connection: Connection, planned: Planned, moment: 'waiting' | 'reading'): Promise<void> {
    const waitMs = this.#random.below(LONGEST_WAIT_MS);
    const timer = moment === 'waiting' ? setTimeout(() => this.#end(connection), waitMs) : undefined;
    // Called when there is more to come.
    const pace = async () => {
      if (moment === 'reading') this.#end(connection);
    };
    const answer = await connection.send(planned.request, { pace }).catch(() => undefined);
    clearTimeout(timer);
    if (!answer) return;
    this.#tally.cutTooLate++;
    this.#judge(planned, answer);
  }

  /** As a browser that is closed, or one whose machine is. */
  #end(connection: Connection): void {
    if (this.#random.below(2)) connection.cut();
    else connection.hangUp();
  }
}

/** One that goes to the upstream. */
function isSessionCheck({ path, headers }: ClientRequest): boolean {
  return path === '/api/auth/session' && headers?.['cookie'] !== undefined;
}
