/** Signed-in users who check their sessions all the time, with the cookies of every response as in a browser. */

import type { Sandbox } from '../../src/demo/sandbox/sandbox.ts';
import { CookieJar } from '../../src/demo/tour/cookie-jar.ts';
import { signInThroughForm } from '../../src/demo/tour/sign-in-through-form.ts';
import { eventually } from '../support/eventually.ts';
import { ORDER, SANDBOX_CLIENT } from '../support/sandbox-account.ts';
import { ORIGIN } from '../support/world.ts';

/** The gateway's address, and the sandbox behind it. */
interface Service {
  readonly base: URL;
  readonly sandbox: Sandbox;
}

/** For a busy machine, on which two dozen users take turns. */
const DEADLINE_MS = 60_000;

export class User {
  /** How each session check ended: its status, `other` for another user's profile, or `no response`. */
  readonly outcomes: (number | 'other' | 'no response')[] = [];
  readonly name: string;
  readonly #base: URL;
  readonly #identityProviderUrl: string;
  readonly #jar = new CookieJar();

  private constructor(name: string, { base, sandbox }: Service) {
    this.name = name;
    this.#base = base;
    this.#identityProviderUrl = sandbox.identityProviderUrl;
  }

  static async signIn(service: Service, name: string): Promise<User> {
    const user = new User(name, service);
    await user.signIn();
    return user;
  }

  /** Goes through the login form; rejects unless that ends in a session whose cookies are Secure. */
  async signIn(): Promise<void> {
    const form = { ...SANDBOX_CLIENT, name: this.name, jar: this.#jar };
    const identityProviderUrl = this.#identityProviderUrl;
    const { code, codeVerifier } = await signInThroughForm({ ...form, identityProviderUrl });
    const response = await this.#post('/api/auth/idp', { code, code_verifier: codeVerifier });
    const cookies = response.headers.getSetCookie();
    if (cookies.length !== 2 || !cookies.every((cookie) => cookie.includes('; Secure')))
      throw new Error(`sign-in: ${response.status} with the cookies ${cookies}`);
  }

  async check(): Promise<void> {
    try {
      const response = await this.request('/api/auth/session');
      const isOwn = (await response.text()).includes(`"${this.name}"`);
      this.outcomes.push(response.status === 200 && !isOwn ? 'other' : response.status);
    } catch {
      this.outcomes.push('no response');
    }
  }

  generate(order = ORDER): Promise<Response> {
    return this.#post('/api/music/generate', order);
  }

  listen(creationId: string): Promise<Response> {
    return this.request(`/api/upstream/v1/music/creations/${creationId}/content`);
  }

  /** Whether the browser has a refresh cookie. */
  get isSignedIn(): boolean {
    return this.#jar.names(this.#base).includes('svc_music_refresh');
  }

  #post(path: string, body: unknown): Promise<Response> {
    return this.request(path, { method: 'POST', body: JSON.stringify(body) });
  }

  request(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { origin: ORIGIN, 'content-type': 'application/json' };
    // On a reused connection Bun repeats a GET that had no response, which would hide the failure.
    const options: BunFetchRequestInit = { keepalive: false, tls: { rejectUnauthorized: false } };
    return this.#jar.fetch(new URL(path, this.#base), { ...init, ...options, headers });
  }
}

/** Users who check their sessions without a pause until they are stopped. */
export class Crowd implements Disposable {
  readonly #service: Service;
  readonly #users: User[];
  readonly #ended: Promise<unknown>;
  #isStopped = false;

  private constructor(service: Service, users: User[]) {
    this.#service = service;
    this.#users = users;
    this.#ended = Promise.all(users.map((user) => this.#keepChecking(user)));
  }

  static async arrive(service: Service, size: number): Promise<Crowd> {
    const names = Array.from({ length: size }, (_, index) => `User ${index}`);
    return new Crowd(service, await Promise.all(names.map((name) => User.signIn(service, name))));
  }

  /** Waits until each has had this many more responses. */
  async goesOn(checks: number): Promise<void> {
    const targets = this.#users.map(({ outcomes }) => outcomes.length + checks);
    const areReached = () =>
      this.#users.every(({ outcomes }, index) => outcomes.length >= (targets[index] ?? 0));
    await this.until(areReached, `${checks} more session checks of every user`);
  }

  /**
   * Lets every access token expire, this many times, and waits for the checks that follow. No refresh may be under way
   * at the start: a token that expires between its refresh and the call that follows is a 401 of the upstream's.
   */
  async renews(rounds: number): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      this.#service.sandbox.upstream.expireAccessTokens();
      await this.goesOn(3);
    }
  }

  /** Like `eventually`, but gives up as soon as a session check has failed. */
  async until(condition: () => boolean, what: string): Promise<void> {
    const checked = () => {
      const failed = this.outcomes.filter((outcome) => outcome !== 200);
      if (failed.length) throw new Error(`session checks: ${failed.join(', ')}`);
      return condition();
    };
    await eventually(checked, what, DEADLINE_MS);
  }

  async leave(): Promise<void> {
    this[Symbol.dispose]();
    await this.#ended;
  }

  [Symbol.dispose](): void {
    this.#isStopped = true;
  }

  /** How the checks of all users have ended. */
  get outcomes() {
    return this.#users.flatMap(({ outcomes }) => outcomes);
  }

  async #keepChecking(user: User): Promise<void> {
    while (!this.#isStopped) await user.check();
  }
}
