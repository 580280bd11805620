/** Signed-in users who check their sessions all the time, as browsers would: the cookies follow every answer. */

import { CookieJar } from '../../src/demo/tour/cookie-jar.ts';
import { signInThroughForm } from '../../src/demo/tour/sign-in-through-form.ts';
import { ORDER, SANDBOX_CLIENT } from './sandbox-account.ts';
import type { TwoInstances } from './two-instances.ts';
import { ORIGIN } from './world.ts';

export class Visitor {
  /** How each session check ended: its status, `other` when it was 200 and not this user's profile, or `no answer`. */
  readonly outcomes: (number | 'other' | 'no answer')[] = [];
  readonly #name: string;
  readonly #base: URL;
  readonly #jar = new CookieJar();

  private constructor(name: string, base: URL) {
    this.#name = name;
    this.#base = base;
  }

  /** Goes through the login form; rejects unless that ends in a session whose cookies are Secure. */
  static async signIn({ base, sandbox }: TwoInstances, name: string): Promise<Visitor> {
    const visitor = new Visitor(name, base);
    const { identityProviderUrl } = sandbox;
    const grant = await signInThroughForm({
      ...SANDBOX_CLIENT,
      identityProviderUrl,
      name,
      jar: visitor.#jar,
    });
    const answer = await visitor.#post('/api/auth/idp', {
      code: grant.code,
      code_verifier: grant.codeVerifier,
    });
    const cookies = answer.headers.getSetCookie();
    if (cookies.length !== 2 || !cookies.every((cookie) => cookie.includes('; Secure')))
      throw new Error(`sign-in: ${answer.status} with the cookies ${cookies}`);
    return visitor;
  }

  async check(): Promise<void> {
    try {
      const answer = await this.#fetch('/api/auth/session', {});
      const isOwn = (await answer.text()).includes(`"${this.#name}"`);
      this.outcomes.push(answer.status === 200 && !isOwn ? 'other' : answer.status);
    } catch {
      this.outcomes.push('no answer');
    }
  }

  generate(): Promise<Response> {
    return this.#post('/api/music/generate', ORDER);
  }

  #post(path: string, body: unknown): Promise<Response> {
    return this.#fetch(path, { method: 'POST', body: JSON.stringify(body) });
  }

  #fetch(path: string, init: RequestInit): Promise<Response> {
    const options: BunFetchRequestInit = {
      ...init,
      headers: { origin: ORIGIN, 'content-type': 'application/json' },
      // On a connection that it has used before, Bun sends a GET again that got no answer, and no failure would be seen.
      keepalive: false,
      // The certificate is the example's own.
      tls: { rejectUnauthorized: false },
    };
    return this.#jar.fetch(new URL(path, this.#base), options);
  }
}

/** So many visitors, who check their sessions without a pause until they are stopped. */
export class Crowd implements Disposable {
  readonly #example: TwoInstances;
  readonly #visitors: Visitor[];
  readonly #ended: Promise<unknown>;
  #isStopped = false;

  private constructor(example: TwoInstances, visitors: Visitor[]) {
    this.#example = example;
    this.#visitors = visitors;
    this.#ended = Promise.all(visitors.map((visitor) => this.#keepChecking(visitor)));
  }

  static async arrive(example: TwoInstances, size: number): Promise<Crowd> {
    const names = Array.from({ length: size }, (_, index) => `Visitor ${index}`);
    return new Crowd(example, await Promise.all(names.map((name) => Visitor.signIn(example, name))));
  }

  /** Waits until each has had so many more answers. */
  async goesOn(checks: number): Promise<void> {
    const before = this.#visitors.map(({ outcomes }) => outcomes.length);
    while (this.#visitors.some(({ outcomes }, index) => outcomes.length < (before[index] ?? 0) + checks))
      await Bun.sleep(5);
  }

  /**
   * Every access token expires, and everybody goes on; so many times. Nobody may be refreshing when it begins: a token
   * that expires between the refresh and the call that follows is a 401 of the upstream's, and not the end of a session.
   */
  async renews(rounds: number): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      this.#example.sandbox.upstream.expireAccessTokens();
      await this.goesOn(3);
    }
  }

  /** Waits for something that cannot come about any more when a check has failed. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      const { '200': _, ...failed } = this.outcomes();
      if (Object.keys(failed).length) throw new Error(`session checks: ${JSON.stringify(failed)}`);
      await Bun.sleep(5);
    }
  }

  async leave(): Promise<void> {
    this[Symbol.dispose]();
    await this.#ended;
  }

  /** Lets nobody begin another check. */
  [Symbol.dispose](): void {
    this.#isStopped = true;
  }

  /** How many checks have ended each way. */
  outcomes(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const outcome of this.#visitors.flatMap(({ outcomes }) => outcomes))
      counts[outcome] = (counts[outcome] ?? 0) + 1;
    return counts;
  }

  async #keepChecking(visitor: Visitor): Promise<void> {
    while (!this.#isStopped) await visitor.check();
  }
}
