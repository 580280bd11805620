/** Describes a failure to a person: what the server said, and what to do next. */

import { GatewayRequestError } from '../../client/gateway-request.ts';
import { NotAudioError } from '../../client/not-audio-error.ts';
import { RecoveryError } from '../../client/recovery-error.ts';
import { SignInError } from '../../client/sign-in.ts';
import type { TextKey } from './english.ts';
import type { Message } from './notice.ts';

/**
 * What the page was doing when it failed:
 * - `ordering`: the order was sent. Unless it was clearly refused, the upstream may still generate the track.
 * - `receiving`: the track has begun to arrive.
 * - `loading`: the page itself tries again.
 * - `signing-in`: there is no session yet that could end.
 * - `sending`: a file, which may be what is wrong.
 */
export type Doing = 'ordering' | 'receiving' | 'loading' | 'signing-in' | 'changing' | 'sending';

const SIGN_IN_ADVICE = {
  denied: 'signInDenied',
  not_begun: 'signInStale',
  invalid_response: 'signInInvalid',
} as const satisfies Record<SignInError['code'], TextKey>;

export function describeFailure(error: unknown, doing: Doing, isOnline: boolean): Message {
  if (error instanceof SignInError) return { advice: SIGN_IN_ADVICE[error.code] };
  // The client keeps a sign-in in the tab's storage, which the browser blocks together with cookies.
  if (error instanceof DOMException && error.name === 'SecurityError') return { advice: 'cookiesBlocked' };
  if (isSessionEnd(error, doing)) return { advice: 'sessionEnded' };
  if (error instanceof NotAudioError) return { advice: 'notAudio' };
  if (error instanceof RecoveryError) return { advice: error.creationId ? 'interrupted' : 'uncertain' };
  return error instanceof GatewayRequestError
    ? describeRequest(error, doing, isOnline)
    : { advice: 'unexpected' };
}

function describeRequest(error: GatewayRequestError, doing: Doing, isOnline: boolean): Message {
  if (doing === 'receiving') return { advice: 'interrupted' };
  if (error.status === 0 && !isOnline) return { advice: 'offline' };
  if (doing === 'ordering' && !error.retryIsSafe) return { advice: 'uncertain' };
  if (error.status === 0) return { advice: doing === 'loading' ? 'notReached' : 'unreachable' };
  // The upstream's words are in its own language, and say no more.
  if (error.status === 402) return { advice: 'noCredits' };
  return { said: error.message, ...nextStep(error, doing) };
}

export function isSessionEnd(error: unknown, doing: Doing): boolean {
  const reason = error instanceof RecoveryError ? error.cause : error;
  return doing !== 'signing-in' && reason instanceof GatewayRequestError && reason.sessionHasEnded;
}

function nextStep({ status, retryAfterSeconds }: GatewayRequestError, doing: Doing): Message {
  if (doing === 'loading') return { advice: 'retrying' };
  if (doing === 'signing-in') return { advice: 'signInAgain' };
  if (doing === 'sending' && [400, 413, 415, 422].includes(status)) return { advice: 'otherFile' };
  if (status === 404) return { advice: 'gone' };
  if (retryAfterSeconds !== undefined) return { advice: 'busy', values: { seconds: retryAfterSeconds } };
  return { advice: 'later' };
}

/** For a deletion: another request may have made it before. */
export function unlessGone(error: unknown): void {
  if (!(error instanceof GatewayRequestError && error.status === 404)) throw error;
}
