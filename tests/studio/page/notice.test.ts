import { expect, it } from 'bun:test';
import { GatewayRequestError } from '../../../src/client/gateway-request.ts';
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

/** A generation that could not be recovered. */
function loss(creationId: string | null, cause?: unknown) {
  return new RecoveryError('refused', { creationId, idempotencyKey: 'a-key' }, cause);
}

it.each<[what: string, error: unknown, doing: Doing, isOnline: boolean, advice: TextKey, said?: string]>([
  ['404', refusal(404), 'changing', true, 'gone', SAID],
  ['a response, though offline,', refusal(500), 'changing', false, 'later', SAID],
  ['a load of what is gone', refusal(404), 'loading', true, 'retrying', SAID],
  ['a load without a response', refusal(0), 'loading', true, 'notReached'],
  ['an order without a response', refusal(0, false), 'ordering', true, 'uncertain'],
  ['an order that failed with 500', refusal(500, false), 'ordering', true, 'uncertain'],
  ['a broken track offline', refusal(0, false), 'receiving', false, 'interrupted'],
  ['a lost track', loss('c-1', refusal(404)), 'receiving', true, 'interrupted'],
  ['a lost order', loss(null, refusal(402)), 'ordering', true, 'uncertain'],
  ['the end of the session', refusal(401, false), 'receiving', false, 'sessionEnded'],
  ['the end of the session after a break', loss('c-1', refusal(401)), 'receiving', true, 'sessionEnded'],
  ['a refused sign-in', refusal(401), 'signing-in', true, 'signInAgain', SAID],
  ['a denied sign-in', new SignInError('denied', ''), 'changing', true, 'signInDenied'],
  ['503', refusal(503, true, 0), 'ordering', true, 'busy', SAID],
])('the advice after a failure fits %s', (...[, error, doing, isOnline, advice, said]) => {
  const message = describeFailure(error, doing, isOnline);
  expect(message).toMatchObject({ advice, ...(said && { said }) });
  expect(message.values).toEqual(advice === 'busy' ? { seconds: 0 } : undefined);
  expect(isSessionEnd(error, doing)).toBe(advice === 'sessionEnded');
});

it('the notice shows the latest message until it is dismissed, and a passing one only where no other is', () => {
  const { root, text, shown } = openPart('notice');
  const notice = createNotice(root, { text, onTryNow: async () => {} });
  const alert = () => !root.hidden && shown('alert');
  notice.showPassing({ advice: 'retrying' });
  expect([alert(), shown('try-now')]).toEqual(['Trying again by itself.', english.tryNow]);
  notice.clearPassing();
  expect(alert()).toBe(false);
  notice.show({ said: 'Too many.', advice: 'busy', values: { seconds: 5 } });
  notice.showPassing({ advice: 'retrying' });
  notice.clearPassing();
  expect([alert(), shown('try-now')]).toEqual(['Too many. Try again in 5 seconds.', '']);
  part(root, 'dismiss').click();
  expect(alert()).toBe(false);
});
