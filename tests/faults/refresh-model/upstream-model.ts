/** A model of the upstream: refresh tokens rotate, and one that is sent a second time ends its whole family. */

import { Admission } from '../../../src/gateway/http/admission/admission.ts';
import type { TokenPair } from '../../../src/gateway/upstream/token-pair.ts';
import { type RefreshVerdict, UpstreamApi } from '../../../src/gateway/upstream/upstream-api.ts';
import { settings } from './facts.ts';
import type { History, Token } from './history.ts';
import type { ProcessClock, VirtualTime } from './virtual-time.ts';

/** How one call to the upstream goes. */
export interface Fate {
  /** Before it arrives, and before its response does. */
  readonly beforeMs: number;
  readonly afterMs: number;
  readonly lost: 'never' | 'before it arrives' | 'after it arrived';
}

const ONE_WAY_MS = 50;

/** @param fates of one call after the other, and from the first again */
export function upstreamModel(
  time: VirtualTime,
  history: History,
  fates: readonly Fate[],
  expiresInSeconds: number,
) {
  const tokens = new Map<string, Token>();
  const spent = new Set<Token>();
  let families = 0;
  let calls = 0;

  const issue = (before: Token | string): Token => {
    const token = history.issue(before);
    tokens.set(token.text, token);
    return token;
  };
  const tokenWith = (text: string): Token => {
    const token = tokens.get(text);
    if (!token) throw new Error(`the upstream has never issued ${text}`);
    return token;
  };
  const isLive = (token: Token) => !token.family.revoked && !spent.has(token);
  const pairOf = ({ text }: Token): TokenPair => {
    return { accessToken: `access-${text}`, refreshToken: text, expiresInSeconds };
  };

  /** Returns whether a response came back in time. What has been sent may still arrive later. */
  const call = (clock: ProcessClock, timeoutMs: number, receive: () => void): Promise<boolean> => {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const { beforeMs = 0, afterMs = 0, lost } = fates[calls++ % fates.length] ?? {};
    const after = (ms: number, happen: () => void) =>
      ms > 0 ? time.timer(ms, happen) : time.event(ONE_WAY_MS, happen);
    const end = (isBack: boolean) => {
      giveUp();
      if (clock.isAlive) resolve(isBack);
    };
    const giveUp = time.timer(timeoutMs, () => end(false));
    after(beforeMs, () => {
      if (lost === 'before it arrives') return end(false);
      receive();
      after(afterMs, () => end(lost !== 'after it arrived'));
    });
    return promise;
  };

  /** The connection of one process to the upstream. */
  const endpoints = (clock: ProcessClock, instance: string): UpstreamApi => {
    const { signInMs, logoutMs } = settings.timeouts;
    const refresh = async (refreshToken: string): Promise<RefreshVerdict> => {
      const token = tokenWith(refreshToken);
      const send = history.send({ token, instance });
      const isBack = await call(clock, signInMs, () => {
        send.arrived = history.moment(`the upstream has received ${refreshToken}`);
        if (isLive(token)) send.successor = issue(token);
        else token.family.revoked ??= send.arrived;
        spent.add(token);
      });
      const { successor } = send;
      send.outcome = isBack ? (successor ? 'renewed' : 'rejected') : 'unreachable';
      send.ended = history.moment(`${instance} has the outcome for ${refreshToken}: ${send.outcome}`);
      if (!isBack) return { kind: 'unreachable', cause: new Error('unreachable') };
      return successor ? { kind: 'renewed', pair: pairOf(successor) } : { kind: 'rejected' };
    };
    const signOut = async ({ refreshToken }: Pick<TokenPair, 'refreshToken'>): Promise<number> => {
      const token = tokenWith(refreshToken);
      history.moment(`${instance} signs ${refreshToken} out at the upstream`);
      history.upstreamSignOuts.push(token);
      const isBack = await call(clock, logoutMs, () => {
        // A spent token signs nobody out.
        if (isLive(token)) token.family.revoked = history.moment(`${refreshToken} is signed out`);
      });
      if (!isBack) throw new Error('unreachable');
      return 204;
    };
    return Object.assign(new UpstreamApi(settings, new Admission(settings)), { refresh, signOut });
  };

  return { signIn: () => issue(`t${families++}`), pairOf, tokenWith, endpoints };
}
