import { expect, it } from 'bun:test';
import { GatewayRequestError } from '../../../src/client/gateway-request.ts';
import { RecoveryError } from '../../../src/client/recovery-error.ts';
import type { TextKey } from '../../../src/demo/studio/english.ts';
import { type Doing, describeFailure, isSessionEnd } from '../../../src/demo/studio/failure.ts';

const refusal = (status: number, retryIsSafe = true) =>
  new GatewayRequestError('The gateway said no.', { status, retryIsSafe });

/** A generation that could not be recovered. */
const loss = (creationId: string | null, cause: unknown) =>
  new RecoveryError('refused', { creationId, idempotencyKey: 'a-key' }, cause);

it.each<[what: string, error: Error, doing: Doing, advice: TextKey]>([
  ['an order without a response', refusal(0, false), 'ordering', 'uncertain'],
  ['an order that failed with 500', refusal(500, false), 'ordering', 'uncertain'],
  ['an order that was refused', refusal(503), 'ordering', 'later'],
  ['a lost order', loss(null, refusal(402)), 'ordering', 'uncertain'],
  ['a broken track', refusal(0, false), 'receiving', 'interrupted'],
  ['a lost track', loss('c-1', refusal(404)), 'receiving', 'interrupted'],
  ['the end of the session', refusal(401, false), 'receiving', 'sessionEnded'],
  ['the end of the session after a break', loss('c-1', refusal(401)), 'receiving', 'sessionEnded'],
  ['a refused sign-in', refusal(401), 'signing-in', 'signInAgain'],
])('the advice after a failure fits %s', (_, error, doing, advice) => {
  expect(describeFailure(error, doing, true)).toMatchObject({ advice });
  expect(isSessionEnd(error, doing)).toBe(advice === 'sessionEnded');
});
