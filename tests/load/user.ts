/** A signed-in user, with the cookies of every response as in a browser. */

import type { Sandbox } from '../../src/demo/sandbox/sandbox.ts';
import { CookieJar } from '../../src/demo/tour/cookie-jar.ts';
import { signInThroughForm } from '../../src/demo/tour/sign-in-through-form.ts';
import { SANDBOX_CLIENT } from '../support/sandbox-account.ts';
import { ORIGIN } from '../support/world.ts';

/** The gateway's address, and the sandbox behind it. */
export interface Service {
  readonly base: URL;
  readonly sandbox: Sandbox;
}

export class User {
  readonly name: string;
  readonly #service: Service;
  readonly #jar = new CookieJar();

  private constructor(name: string, service: Service) {
    this.name = name;
    this.#service = service;
  }

  static async signIn(service: Service, name: string): Promise<User> {
    const user = new User(name, service);
    await user.signIn();
    return user;
  }

  /** Goes through the login form; rejects unless that ends in a session whose cookies are Secure. */
  async signIn(): Promise<void> {
    const { identityProviderUrl } = this.#service.sandbox;
    const form = { ...SANDBOX_CLIENT, identityProviderUrl, name: this.name, jar: this.#jar };
    const { code, codeVerifier } = await signInThroughForm(form);
    const response = await this.post('/api/auth/idp', { code, code_verifier: codeVerifier });
    const cookies = response.headers.getSetCookie();
    if (cookies.length !== 2 || !cookies.every((cookie) => cookie.includes('; Secure')))
      throw new Error(`sign-in: ${response.status} with the cookies ${cookies}`);
  }

  /** Whether the browser has a refresh cookie. */
  get isSignedIn(): boolean {
    return this.#jar.names(this.#service.base).includes('svc_music_refresh');
  }

  post(path: string, body: unknown): Promise<Response> {
    return this.request(path, { method: 'POST', body: JSON.stringify(body) });
  }

  request(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { origin: ORIGIN, 'content-type': 'application/json' };
    // On a reused connection Bun repeats a GET that had no response, which would hide the failure.
    const options: BunFetchRequestInit = { keepalive: false, tls: { rejectUnauthorized: false } };
    return this.#jar.fetch(new URL(path, this.#service.base), { ...init, ...options, headers });
  }
}
