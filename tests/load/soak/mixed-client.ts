/** One of the users who send mixed requests: it keeps its cookies and disconnects now and then. */

import fc from 'fast-check';
import { type ParsedResponse, RawConnection } from '../../support/raw-http.ts';
import { headerOf, mixedKind, NEVER, type Planned } from './mixed-kinds.ts';
import { bytesOf, exchange } from './requests.ts';
import { cookies, firstCookies } from './rotating-sessions.ts';
import type { Rig } from './scenario.ts';

/** What happens next, chosen at random. */
export const step = fc.record({
  kind: mixedKind,
  number: fc.nat(999_999_999),
  /** Most requests are not cut. A third of the others have their response too soon. */
  cut: fc.oneof(
    { weight: 91, arbitrary: fc.constant(undefined) },
    { weight: 9, arbitrary: fc.constantFrom('sending', 'waiting', 'reading') },
  ),
  waitMs: fc.nat(5),
  hangsUp: fc.boolean(),
});
export type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

/** What all clients have seen together. */
export class Tally {
  sent = 0;
  cut = 0;
  readonly statuses = new Map<number, number>();
  /** How long session checks took. */
  readonly checkMs: number[] = [];
}

export class MixedClient {
  readonly #rig: Rig;
  readonly #user: string;
  readonly #tally: Tally;
  #cookie: string;
  #connection: RawConnection | undefined;

  constructor(rig: Rig, user: string, tally: Tally) {
    this.#rig = rig;
    this.#user = user;
    this.#tally = tally;
    this.#cookie = firstCookies(user);
  }

  async send({ kind, number, cut, waitMs, hangsUp }: Step): Promise<void> {
    const planned = kind(number, this.#cookie, this.#user);
    const moment = planned.request.path === NEVER ? 'waiting' : cut;
    const connection = this.#openConnection();
    const end = () => (hangsUp ? connection.hangUp() : connection.reset());
    this.#tally.sent++;
    if (moment === undefined) return this.#judge(planned, exchange(connection, planned.request));
    if (moment === 'sending') {
      const bytes = bytesOf(planned.request);
      await connection.send(bytes.slice(0, 1 + (number % (bytes.length - 1))));
      await Bun.sleep(waitMs);
    } else {
      // `reading`: once a part of the response has been read.
      const timer = moment === 'waiting' ? setTimeout(end, waitMs) : undefined;
      const onPart = timer ? undefined : end;
      const response = await exchange(connection, planned.request, onPart).catch(() => undefined);
      clearTimeout(timer);
      if (response) await this.#judge(planned, Promise.resolve(response));
    }
    this.#tally.cut++;
    end();
  }

  close(): void {
    this.#connection?.reset();
  }

  #openConnection(): RawConnection {
    if (!this.#connection || this.#connection.isClosed)
      this.#connection = new RawConnection(Number(new URL(this.#rig.gateway.url).port));
    return this.#connection;
  }

  async #judge({ request, status, isRight }: Planned, sending: Promise<ParsedResponse>): Promise<void> {
    const { method, path } = request;
    const { statuses, checkMs } = this.#tally;
    const sentAt = performance.now();
    await this.#rig.problems.during(
      `${method} ${path}`,
      sending.then((response) => {
        if (path === '/api/auth/session') checkMs.push(performance.now() - sentAt);
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
        this.#keepCookies(response);
        if (response.status === status && isRight(response)) return;
        throw new Error(`${response.status} instead of ${status}: ${response.body.slice(0, 100)}`);
      }),
    );
  }

  #keepCookies(response: ParsedResponse): void {
    const [access, refresh] = headerOf(response, 'set-cookie').map((each) => /^\w+=([^;]+)/.exec(each)?.[1]);
    if (access !== undefined && refresh !== undefined) this.#cookie = cookies(access, refresh);
  }
}
