/** A browser that checks its session over and over, and how long each check takes. */

import { ORIGIN } from '../../support/world.ts';
import { Connection } from './connection.ts';
import type { Problems } from './outcome.ts';
import { firstCookies } from './rotating-sessions.ts';

export class SessionChecks {
  /** In milliseconds. */
  readonly durations: number[] = [];
  readonly #url: string;
  readonly #problems: Problems;

  constructor(url: string, problems: Problems) {
    this.#url = url;
    this.#problems = problems;
  }

  /** Makes so many checks, one after the other, on one connection. */
  async make(count: number): Promise<void> {
    const connection = await Connection.open(this.#url);
    for (let index = 0; index < count; index++) await this.#check(connection);
    connection.cut();
  }

  /** Makes a check every now and then, and at least one, until the work is done. */
  async during<Result>(work: Promise<Result>, pauseMs = 20): Promise<Result> {
    const connection = await Connection.open(this.#url);
    let isOver = false;
    const over = work.finally(() => {
      isOver = true;
    });
    // Its failure is for who awaits the result.
    over.catch(() => {});
    do {
      await this.#check(connection);
      await Bun.sleep(pauseMs);
    } while (!isOver);
    connection.cut();
    return over;
  }

  async #check(connection: Connection): Promise<void> {
    const before = performance.now();
    const { status, body } = await connection.send({
      method: 'GET',
      path: '/api/auth/session',
      headers: { origin: ORIGIN, cookie: firstCookies('checker') },
    });
    this.durations.push(performance.now() - before);
    if (status !== 200 || body.toString() !== '{"user":"checker"}') {
      this.#problems.add(`a session check: ${status} ${body.toString().slice(0, 80)}`);
    }
  }
}
