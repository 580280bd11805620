/** A model of the upstream: refresh tokens rotate, and one that is sent a second time ends its whole family. */

import { Admission } from '../../../src/gateway/http/admission/admission.ts';
import type { Settings } from '../../../src/gateway/settings/settings.ts';
import type { TokenPair } from '../../../src/gateway/upstream/token-pair.ts';
import { type RefreshVerdict, UpstreamApi } from '../../../src/gateway/upstream/upstream-api.ts';
import type { History, Send, Token } from './history.ts';
import type { ProcessClock, VirtualTime } from './virtual-time.ts';

/** How one call to the upstream goes. */
export interface Fate {
  /** Before it arrives, and before its response does. */
  readonly beforeMs: number;
  readonly afterMs: number;
  readonly lost: 'never' | 'before it arrives' | 'after it arrived';
}

const ONE_WAY_MS = 50;

export class UpstreamModel {
  readonly #time: VirtualTime;
  readonly #history: History;
  readonly #fates: readonly Fate[];
  readonly #expiresInSeconds: number;
  /** The last issue of each text. */
  readonly #tokens = new Map<string, Token>();
  readonly #spent = new Set<Token>();
  #calls = 0;

  constructor(time: VirtualTime, history: History, fates: readonly Fate[], expiresInSeconds: number) {
    this.#time = time;
    this.#history = history;
    this.#fates = fates;
    this.#expiresInSeconds = expiresInSeconds;
  }

  /** @param again a token that is issued again with the same text, which ends its family */
  signIn(again?: Token): Token {
    if (again) again.family.revoked ??= this.#history.moment(`${again.text} is revoked`);
    const number = new Set(this.#history.tokens.map(({ family }) => family)).size;
    return this.#keep(this.#history.issue({ number, revoked: undefined }, undefined, again?.text));
  }

  pairOf({ text }: Token): TokenPair {
    return { accessToken: `access-${text}`, refreshToken: text, expiresInSeconds: this.#expiresInSeconds };
  }

  tokenWith(text: string): Token {
    const token = this.#tokens.get(text);
    if (!token) throw new Error(`the upstream has never issued ${text}`);
    return token;
  }

  /** The connection of one process to the upstream. */
  endpoints(settings: Settings, clock: ProcessClock, instance: string) {
    const { signInMs, logoutMs } = settings.timeouts;
    const refresh = async (refreshToken: string): Promise<RefreshVerdict> => {
      if (!clock.isAlive) return new Promise(() => {});
      const send = this.#history.send({ token: this.tokenWith(refreshToken), instance });
      const label = `${instance} refreshes ${refreshToken}`;
      const isBack = await this.#call(clock, label, signInMs, () => this.#receiveRefresh(send));
      const { successor } = send;
      send.outcome = isBack ? (successor ? 'renewed' : 'rejected') : 'unreachable';
      send.ended = this.#history.moment(`${instance} has the outcome for ${refreshToken}: ${send.outcome}`);
      if (!isBack) return { kind: 'unreachable', cause: new Error('unreachable') };
      return successor ? { kind: 'renewed', pair: this.pairOf(successor) } : { kind: 'rejected' };
    };
    const signOut = async ({ refreshToken }: Pick<TokenPair, 'refreshToken'>): Promise<number> => {
      if (!clock.isAlive) return new Promise(() => {});
      const label = `${instance} signs ${refreshToken} out at the upstream`;
      this.#history.moment(label);
      this.#history.upstreamSignOuts.push(refreshToken);
      const isBack = await this.#call(clock, label, logoutMs, () => this.#receiveSignOut(refreshToken));
      if (!isBack) throw new Error('unreachable');
      return 204;
    };
    return Object.assign(new UpstreamApi(settings, new Admission(settings)), { refresh, signOut });
  }

  #receiveRefresh(send: Send): void {
    const { token } = send;
    send.verdict = this.#isLive(token) ? 'renewed' : 'rejected';
    send.arrived = this.#history.moment(`the upstream: ${token.text} ${send.verdict}`);
    if (send.verdict === 'rejected') token.family.revoked ??= send.arrived;
    else {
      this.#spent.add(token);
      send.successor = this.#keep(this.#history.issue(token.family, token));
    }
  }

  /** A spent token signs nobody out. */
  #receiveSignOut(text: string): void {
    const token = this.#tokens.get(text);
    if (token && this.#isLive(token)) token.family.revoked = this.#history.moment(`${text} is revoked`);
  }

  #isLive(token: Token): boolean {
    return !token.family.revoked && !this.#spent.has(token) && this.#tokens.get(token.text) === token;
  }

  #keep(token: Token): Token {
    this.#tokens.set(token.text, token);
    return token;
  }

  /** Returns whether a response came back in time. What has been sent may still arrive later. */
  #call(clock: ProcessClock, label: string, timeoutMs: number, receive: () => void): Promise<boolean> {
    const fate = this.#fates[this.#calls++ % Math.max(1, this.#fates.length)];
    const { beforeMs, afterMs, lost } = fate ?? { beforeMs: 0, afterMs: 0, lost: 'never' };
    const after = (ms: number, what: string, happen: () => void) =>
      ms > 0 ? this.#time.timer(what, ms, happen) : this.#time.event(what, ONE_WAY_MS, happen);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const end = (isBack: boolean) => {
      giveUp();
      if (clock.isAlive) resolve(isBack);
    };
    const giveUp = this.#time.timer(`times out: ${label}`, timeoutMs, () => end(false));
    after(beforeMs, label, () => {
      if (lost === 'before it arrives') return end(false);
      receive();
      after(afterMs, `comes back: ${label}`, () => end(lost === 'never'));
    });
    return promise;
  }
}
