/** Repeats a call that fails because of the network or an overload, at growing and random intervals. */

import { GatewayRequestError } from './gateway-request.ts';

export interface RepetitionOptions {
  /** Ends everything at once. */
  readonly signal?: AbortSignal | undefined;
  /** Counted from the first failure. By default, ten minutes: no track takes longer to generate. */
  readonly giveUpAfterMs?: number | undefined;
  /** Called before each wait. */
  readonly onFailure?: (error: GatewayRequestError) => void;
}

const GIVE_UP_AFTER_MS = 600_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8_000;

/**
 * Conflict: the upstream still works on it. The others: the next attempt may reach somebody. Cloudflare responds with 520,
 * 522 and 524 where other proxies do with 504.
 */
const TEMPORARY_STATUS = /^(?:0|40[89]|50[234]|52[024])$/;

/**
 * Makes the call until it succeeds. Only for calls that may be carried out twice.
 *
 * @throws the call's last error when it is not temporary, or when time is over
 * @throws the reason of the signal when it is aborted during a wait
 */
export async function repeatWhileTemporary<Result>(
  call: () => Promise<Result>,
  { signal, giveUpAfterMs = GIVE_UP_AFTER_MS, onFailure }: RepetitionOptions,
): Promise<Result> {
  let giveUpAt = 0;
  for (let longestMs = FIRST_WAIT_MS; ; longestMs = Math.min(2 * longestMs, LONGEST_WAIT_MS)) {
    try {
      return await call();
    } catch (error) {
      if (!isTemporary(error)) throw error;
      // The part at random keeps all clients of a restarted gateway from coming back at the same moment.
      const randomMs = (longestMs * (1 + Math.random())) / 2;
      const waitMs = Math.max(randomMs, (error.retryAfterSeconds ?? 0) * 1000);
      giveUpAt ||= performance.now() + giveUpAfterMs;
      if (performance.now() + waitMs > giveUpAt) throw error;
      onFailure?.(error);
      await waitFor(waitMs, signal);
    }
  }
}

/** Whether the same call may succeed later, without any change. */
export function isTemporary(error: unknown): error is GatewayRequestError {
  if (!(error instanceof GatewayRequestError)) return false;
  const { status, retryAfterSeconds, sessionHasEnded, challenge } = error;
  // After other 401s, the session may still be renewed by the next request.
  if (status === 401) return !sessionHasEnded && !challenge;
  return TEMPORARY_STATUS.test(`${status}`) || (status === 429 && retryAfterSeconds !== undefined);
}

/** Ends early when the browser is online again. */
function waitFor(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const over = new AbortController();
    const end = () => {
      over.abort();
      clearTimeout(timer);
      if (signal?.aborted) reject(signal.reason);
      else resolve();
    };
    const timer = setTimeout(end, ms);
    for (const [target, event] of [
      [globalThis, 'online'],
      [signal, 'abort'],
    ] as const) {
      target?.addEventListener?.(event, end, { signal: over.signal });
    }
    if (signal?.aborted) end();
  });
}
