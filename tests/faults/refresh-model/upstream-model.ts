/** A model of the upstream: refresh tokens rotate, and one that is sent a second time is rejected. */

import { Admission } from '../../../src/gateway/admission/admission.ts';
import type { TokenPair } from '../../../src/gateway/upstream/token-pair.ts';
import { type RefreshVerdict, UpstreamApi } from '../../../src/gateway/upstream/upstream-api.ts';
import { type History, type Moment, type Send, settings, type Token } from './history.ts';
import type { Fate, Habits } from './plans.ts';
import type { ProcessClock, VirtualTime } from './virtual-time.ts';

export const ONE_WAY_MS = 50;

/** @param fates of one call after the other, and from the first again */
export function upstreamModel(
  time: VirtualTime,
  history: History,
  fates: readonly Fate[],
  { expiresInSeconds, reuseEndsFamily, issuesSame }: Habits,
) {
  const tokens = new Map<string, Token>();
  const spent = new Set<Token>();
  let families = 0;
  let calls = 0;

  /** @param before the token whose refresh issues this one; without one, it is the first of a session */
  const issue = (before?: Token): Token => {
    const generation = before ? before.generation + 1 : 0;
    const text = before ? before.text.replace(/\d+$/, String(generation)) : `t${families++}.0`;
    const issued = history.moment(`${text} is issued`);
    const family = before?.family ?? { began: issued };
    const token: Token = { text, family, before, generation, issued };
    tokens.set(text, token);
    return token;
  };
  const tokenWith = (text: string): Token => {
    const token = tokens.get(text);
    if (!token) throw new Error(`the upstream has never issued ${text}`);
    return token;
  };
  const isLive = (token: Token) => !token.family.revoked && !spent.has(token);
  const exchange = (token: Token, arrived: Moment): Token | undefined => {
    if (isLive(token)) {
      if (issuesSame) return token;
      spent.add(token);
      return issue(token);
    }
    if (reuseEndsFamily) token.family.revoked ??= arrived;
    return undefined;
  };
  const pairOf = ({ text: refreshToken }: Token): TokenPair => {
    return { accessToken: `access-${refreshToken}`, refreshToken, expiresInSeconds };
  };

  /** Undefined when no response came back in time. What has been sent may still arrive later. */
  const call = <Response extends object>(clock: ProcessClock, timeoutMs: number, receive: () => Response) => {
    const { promise, resolve } = Promise.withResolvers<Response | undefined>();
    const { beforeMs = 0, afterMs = 0, lost } = fates[calls++ % fates.length] ?? {};
    const after = (ms: number, happen: () => void) =>
      ms > 0 ? time.timer(ms, happen) : time.event(ONE_WAY_MS, happen);
    const end = (response?: Response) => {
      giveUp();
      clock.reach(() => resolve(response));
    };
    const giveUp = time.timer(timeoutMs, () => end());
    after(beforeMs, () => {
      if (lost === 'before it arrives') return end();
      const response = receive();
      after(afterMs, () => end(lost === 'after it arrived' ? undefined : response));
    });
    return promise;
  };

  /** The connection of one process to the upstream. */
  const endpoints = (clock: ProcessClock, instance: string): UpstreamApi => {
    const { signInMs, logoutMs } = settings.timeouts;
    const refresh = async (refreshToken: string): Promise<RefreshVerdict> => {
      const token = tokenWith(refreshToken);
      const send: Send = { token, instance, sent: history.moment(`${instance} sends ${refreshToken}`) };
      history.sends.push(send);
      const response = await call(clock, signInMs, (): RefreshVerdict => {
        send.arrived = history.moment(`the upstream has received ${refreshToken}`);
        const next = exchange(token, send.arrived);
        if (next !== token) send.successor = next;
        return next ? { kind: 'renewed', pair: pairOf(next) } : { kind: 'rejected' };
      });
      const verdict = response ?? { kind: 'unreachable', cause: new Error('unreachable') };
      send.verdict = verdict.kind;
      send.ended = history.moment(`${instance} has the verdict on ${refreshToken}: ${send.verdict}`);
      return verdict;
    };
    const signOut = async ({ refreshToken }: Pick<TokenPair, 'refreshToken'>): Promise<number> => {
      const token = tokenWith(refreshToken);
      const sent = history.moment(`${instance} signs ${refreshToken} out at the upstream`);
      history.upstreamSignOuts.push({ token, instance, sent });
      const response = await call(clock, logoutMs, () => {
        // A spent token signs nobody out.
        if (isLive(token)) token.family.revoked = history.moment(`${refreshToken} is signed out`);
        return { status: 204 };
      });
      if (!response) throw new Error('unreachable');
      return response.status;
    };
    return Object.assign(new UpstreamApi(settings, new Admission(settings)), { refresh, signOut });
  };

  /** Issues the first token of a session. */
  const begin = (): Token => {
    const [same] = issuesSame ? tokens.values() : [];
    if (!same) return issue();
    history.moment(`${same.text} is issued again`);
    same.family.revoked = undefined;
    same.family.isReissued = true;
    return same;
  };
  const signIn = (clock: ProcessClock) => call(clock, settings.timeouts.signInMs, begin);
  return { begin, signIn, isLive, pairOf, tokenWith, endpoints };
}
