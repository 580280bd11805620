/** Users who have nothing to do with a load, and whose sessions it must not touch. */

import { request } from '../support/world.ts';
import { cookieOf } from './raw-client.ts';
import type { Problems } from './report.ts';
import { checkSession } from './rig.ts';
import { expired } from './works.ts';

const PAUSE_MS = 10;
/** Every so many session checks there is a refresh and a sign-in. */
const CHECKS = 10;

export class Others implements AsyncDisposable {
  /** How long each session check has taken, in milliseconds. */
  readonly checks: number[] = [];
  readonly #url: string;
  readonly #problems: Problems;
  readonly #ended: Promise<void>;
  #leave = false;

  constructor(url: string, problems: Problems) {
    this.#url = url;
    this.#problems = problems;
    this.#ended = this.#use();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#leave = true;
    await this.#ended;
  }

  async #use(): Promise<void> {
    const during = (work: Promise<unknown>) => this.#problems.during('others', work);
    for (let round = 0; !this.#leave; round++) {
      const since = performance.now();
      await during(checkSession(this.#url));
      this.checks.push(performance.now() - since);
      if (round % CHECKS === 0) {
        await during(this.#expectSuccess('/session', expired(`o-${round}`)));
        const json = { code: `code-${round}`, code_verifier: 'v'.repeat(43) };
        await during(this.#expectSuccess('/idp', cookieOf('new'), { json }));
      }
      await Bun.sleep(PAUSE_MS);
    }
  }

  async #expectSuccess(path: string, headers: Record<string, string>, body: { json?: unknown } = {}) {
    const response = await request(`${this.#url}/api/auth${path}`, { headers, ...body });
    await response.bytes();
    if (response.status !== 200) throw new Error(`${path}: ${response.status}`);
  }
}
