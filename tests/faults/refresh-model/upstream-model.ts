/** A model of the upstream: refresh tokens rotate, and one that is sent a second time ends all that came of its sign-in. */

import { Admission } from '../../../src/gateway/http/admission/admission.ts';
import type { Settings } from '../../../src/gateway/settings/settings.ts';
import type { TokenPair } from '../../../src/gateway/upstream/token-pair.ts';
import { type RefreshOutcome, UpstreamApi } from '../../../src/gateway/upstream/upstream-api.ts';
import type { Family, History, Send, Token } from './history.ts';
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

  /** @param again a token that is issued again with the same text; whatever came of it before is over */
  signIn(again?: Token): Token {
    if (again) again.family.revoked ??= this.#time.moment();
    const families = new Set(this.#history.tokens.map(({ family }) => family)).size;
    return this.#issue({ number: families, revoked: undefined }, undefined, again?.text);
  }

  pairOf({ text }: Token): TokenPair {
    return { accessToken: `access-${text}`, refreshToken: text, expiresInSeconds: this.#expiresInSeconds };
  }

  tokenWith(text: string): Token {
    const token = this.#tokens.get(text);
    if (!token) throw new Error(`the upstream has never issued ${text}`);
    return token;
  }

  isLive(token: Token): boolean {
    return !token.family.revoked && !this.#spent.has(token) && this.#tokens.get(token.text) === token;
  }

  receiveRefresh(send: Send): void {
    const { token } = send;
    send.arrived = this.#time.moment();
    if (!this.isLive(token)) {
      token.family.revoked ??= send.arrived;
      send.verdict = 'rejected';
      return;
    }
    this.#spent.add(token);
    send.verdict = 'renewed';
    send.successor = this.#issue(token.family, token);
  }

  /** A spent token signs nobody out. */
  receiveSignOut(text: string): void {
    const token = this.#tokens.get(text);
    if (token && this.isLive(token)) token.family.revoked = this.#time.moment();
  }

  nextFate(): Fate {
    const fate = this.#fates[this.#calls % Math.max(1, this.#fates.length)];
    this.#calls++;
    return fate ?? { beforeMs: 0, afterMs: 0, lost: 'never' };
  }

  #issue(family: Family, before: Token | undefined, again?: string): Token {
    const generation = before ? before.generation + 1 : 0;
    const text = again ?? `t${family.number}.${generation}`;
    const token = { text, family, before, generation, issued: this.#time.moment() };
    this.#tokens.set(text, token);
    this.#history.tokens.push(token);
    return token;
  }
}

/** The way of one process to the upstream. */
export class ModelEndpoints extends UpstreamApi {
  readonly #upstream: UpstreamModel;
  readonly #time: VirtualTime;
  readonly #history: History;
  readonly #clock: ProcessClock;
  readonly #name: string;
  readonly #timeouts: Settings['timeouts'];

  constructor(
    settings: Settings,
    world: { readonly upstream: UpstreamModel; readonly time: VirtualTime; readonly history: History },
    clock: ProcessClock,
    name: string,
  ) {
    super(settings, new Admission(settings));
    this.#timeouts = settings.timeouts;
    this.#upstream = world.upstream;
    this.#time = world.time;
    this.#history = world.history;
    this.#clock = clock;
    this.#name = name;
  }

  override async refresh(refreshToken: string): Promise<RefreshOutcome> {
    const token = this.#upstream.tokenWith(refreshToken);
    const send: Send = {
      token,
      instance: this.#name,
      sent: this.#time.moment(),
      arrived: undefined,
      verdict: undefined,
      successor: undefined,
      ended: undefined,
      outcome: undefined,
    };
    if (!this.#clock.isAlive) return new Promise(() => {});
    this.#history.sends.push(send);
    const isBack = await this.#call(`refreshes ${refreshToken}`, this.#timeouts.signInMs, () =>
      this.#upstream.receiveRefresh(send),
    );
    send.ended = this.#time.moment();
    const { successor } = send;
    if (isBack && successor) {
      send.outcome = 'renewed';
      return { kind: 'renewed', pair: this.#upstream.pairOf(successor) };
    }
    send.outcome = isBack ? 'rejected' : 'unreachable';
    return isBack ? { kind: 'rejected' } : { kind: 'unreachable', cause: new Error('unreachable') };
  }

  override async signOut({ refreshToken }: Pick<TokenPair, 'refreshToken'>): Promise<number> {
    if (!this.#clock.isAlive) return new Promise(() => {});
    this.#history.upstreamSignOuts.push({
      text: refreshToken,
      instance: this.#name,
      sent: this.#time.moment(),
    });
    const isBack = await this.#call(`signs out ${refreshToken}`, this.#timeouts.logoutMs, () =>
      this.#upstream.receiveSignOut(refreshToken),
    );
    if (!isBack) throw new Error('unreachable');
    return 204;
  }

  /** Whether a response came back in time; what has been sent may still arrive later. */
  #call(label: string, timeoutMs: number, receive: () => void): Promise<boolean> {
    const { beforeMs, afterMs, lost } = this.#upstream.nextFate();
    return new Promise((resolve) => {
      const end = (isBack: boolean) => {
        giveUp();
        if (this.#clock.isAlive) resolve(isBack);
      };
      const giveUp = this.#time.timer(`${this.#name} gives up: ${label}`, timeoutMs, () => end(false));
      this.#after(beforeMs, `${this.#name} ${label}`, () => {
        if (lost === 'before it arrives') return end(false);
        receive();
        this.#after(afterMs, `${this.#name} hears back: ${label}`, () => end(lost === 'never'));
      });
    });
  }

  #after(ms: number, label: string, happen: () => void): void {
    if (ms > 0) this.#time.timer(label, ms, happen);
    else this.#time.event(label, ONE_WAY_MS, happen);
  }
}
