import { expect, it, mock } from 'bun:test';
import { GatewayRequestError } from '../../../src/client/gateway-request.ts';
import { NotAudioError } from '../../../src/client/not-audio-error.ts';
import { RecoveryError } from '../../../src/client/recovery-error.ts';
import { SignInError } from '../../../src/client/sign-in.ts';
import { english, type TextKey } from '../../../src/demo/studio/english.ts';
import { type Doing, describeFailure, isSessionEnd } from '../../../src/demo/studio/failure.ts';
import { createNotice } from '../../../src/demo/studio/notice.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { openPart } from './page.ts';

const SAID = 'The gateway said no.';

function refusal(status: number, retryIsSafe = true, retryAfterSeconds?: number) {
  return new GatewayRequestError(SAID, { status, retryIsSafe, retryAfterSeconds });
}

const JOB = new NotAudioError({ contentType: 'application/json', creationId: null }, '{}');

/** A generation that could not be recovered. */
function loss(creationId: string | null, cause?: unknown) {
  return new RecoveryError('refused', { creationId, idempotencyKey: 'a-key' }, cause);
}

it.each<[what: string, error: unknown, doing: Doing, isOnline: boolean, advice: TextKey, said?: string]>([
  ['402', refusal(402), 'ordering', true, 'noCredits'],
  ['404', refusal(404), 'changing', true, 'gone', SAID],
  ['a response, though offline,', refusal(500), 'changing', false, 'later', SAID],
  ['a load of what is gone', refusal(404), 'loading', true, 'retrying', SAID],
  ['a load without a response', refusal(0), 'loading', true, 'notReached'],
  ['a change without a response', refusal(0), 'changing', true, 'unreachable'],
  ['a change offline', refusal(0), 'changing', false, 'offline'],
  ['an order without a response', refusal(0, false), 'ordering', true, 'uncertain'],
  ['an order that failed with 500', refusal(500, false), 'ordering', true, 'uncertain'],
  ['a job in place of audio', JOB, 'ordering', true, 'notAudio'],
  ['a broken track offline', refusal(0, false), 'receiving', false, 'interrupted'],
  ['a lost track', loss('c-1', refusal(404)), 'receiving', true, 'interrupted'],
  ['a lost order', loss(null, refusal(402)), 'ordering', true, 'uncertain'],
  ['the end of the session', refusal(401, false), 'receiving', false, 'sessionEnded'],
  ['the end of the session after a break', loss('c-1', refusal(401)), 'receiving', true, 'sessionEnded'],
  ['a refused sign-in', refusal(401), 'signing-in', true, 'signInAgain', SAID],
  ['a denied sign-in', new SignInError('denied', ''), 'changing', true, 'signInDenied'],
  ['a bad one', new SignInError('invalid_response', ''), 'changing', true, 'signInInvalid'],
  ['503', refusal(503, true, 0), 'ordering', true, 'busy', SAID],
  ['a bug', new TypeError('x is not a function'), 'ordering', true, 'unexpected'],
])('the advice after a failure fits %s', (...[, error, doing, isOnline, advice, said]) => {
  const message = describeFailure(error, doing, isOnline);
  expect(message).toMatchObject({ advice, ...(said && { said }) });
  expect(message.values).toEqual(advice === 'busy' ? { seconds: 0 } : undefined);
  expect(isSessionEnd(error, doing)).toBe(advice === 'sessionEnded');
});

it('the notice shows the latest message until it is dismissed, and a passing one only where no other is', () => {
  const { root, text, shown } = openPart('notice');
  const tried = Promise.withResolvers<void>();
  const onTryNow = mock(() => tried.promise);
  const notice = createNotice(root, { text, onTryNow });
  const alert = () => !root.hidden && shown('alert');
  notice.showPassing({ advice: 'retrying' });
  expect([alert(), shown('try-now')]).toEqual(['Trying again by itself.', english.tryNow]);
  for (const _ of ['once', 'and not twice at the same time']) part(root, 'try-now').click();
  expect(onTryNow).toHaveBeenCalledTimes(1);
  notice.clearPassing();
  expect(alert()).toBe(false);
  notice.show({ advice: 'later' });
  notice.show({ said: 'Too many.', advice: 'busy', values: { seconds: 5 } });
  notice.showPassing({ advice: 'retrying' });
  notice.clearPassing();
  expect([alert(), shown('try-now')]).toEqual(['Too many. Try again in 5 seconds.', '']);
  part(root, 'dismiss').click();
  expect(alert()).toBe(false);
});
