import { describe, expect, it } from 'bun:test';
import { GatewayRequestError } from '../../../src/client/gateway-request.ts';
import { SignInError } from '../../../src/client/sign-in.ts';
import { type Doing, describeFailure, isSessionEnd } from '../../../src/demo/studio/failure.ts';
import type { Message } from '../../../src/demo/studio/notice.ts';

const said = 'The gateway said no.';

function refusal(status: number, details: { retryIsSafe?: boolean; retryAfterSeconds?: number } = {}) {
  return new GatewayRequestError(said, { status, retryIsSafe: true, ...details });
}

const UNSAFE = { retryIsSafe: false };
const wait = (retryAfterSeconds: number) => ({ retryAfterSeconds });
const busy = (seconds: number): Message => ({ said, advice: 'busy', values: { seconds } });

describe('the advice after a failure', () => {
  it.each<[what: string, error: unknown, doing: Doing, isOnline: boolean, message: Message]>([
    ['402', refusal(402), 'ordering', true, { said, advice: 'noCredits' }],
    ['404', refusal(404), 'changing', true, { said, advice: 'gone' }],
    ['400', refusal(400), 'ordering', true, { said, advice: 'later' }],
    ['a change that may have been made', refusal(502, UNSAFE), 'changing', true, { said, advice: 'later' }],
    ['a failed load', refusal(502), 'loading', true, { said, advice: 'retrying' }],
    ['a load of what is gone', refusal(404), 'loading', true, { said, advice: 'retrying' }],
    ['a load without a response', refusal(0), 'loading', true, { advice: 'notReached' }],
    ['a load offline', refusal(0), 'loading', false, { advice: 'offline' }],
    ['a change without a response', refusal(0), 'changing', true, { advice: 'unreachable' }],
    ['a change offline', refusal(0), 'changing', false, { advice: 'offline' }],
    [
      'a response, though the browser says offline',
      refusal(500),
      'changing',
      false,
      { said, advice: 'later' },
    ],
    ['an order without a response', refusal(0, UNSAFE), 'ordering', true, { advice: 'uncertain' }],
    ['an order that failed with 500', refusal(500, UNSAFE), 'ordering', true, { advice: 'uncertain' }],
    ['an order that failed with 502', refusal(502, UNSAFE), 'ordering', true, { advice: 'uncertain' }],
    ['a broken track', refusal(0, UNSAFE), 'receiving', true, { advice: 'interrupted' }],
    ['a broken track offline', refusal(0, UNSAFE), 'receiving', false, { advice: 'interrupted' }],
    ['the end of the session', refusal(401, UNSAFE), 'receiving', false, { advice: 'sessionEnded' }],
    ['a refused sign-in', refusal(401), 'signing-in', true, { said, advice: 'signInAgain' }],
    ['a denied sign-in', new SignInError('denied', 'no'), 'changing', true, { advice: 'signInDenied' }],
    ['a stale sign-in', new SignInError('not_begun', 'no'), 'changing', true, { advice: 'signInStale' }],
    [
      'a foreign one',
      new SignInError('invalid_response', 'no'),
      'changing',
      true,
      { advice: 'signInInvalid' },
    ],
    ['a request to wait', refusal(503, wait(5)), 'ordering', true, busy(5)],
    ['a request to come at once', refusal(503, wait(0)), 'ordering', true, busy(0)],
    ['a bug', new TypeError('x is not a function'), 'ordering', true, { advice: 'unexpected' }],
    ['a thrown string', 'text', 'loading', false, { advice: 'unexpected' }],
  ])('fits %s', (_what, error, doing, isOnline, message) => {
    expect(describeFailure(error, doing, isOnline)).toEqual(message);
  });

  it('ends a session for a 401, except while signing in, when there is none', () => {
    expect(isSessionEnd(refusal(401), 'receiving')).toBe(true);
    expect(isSessionEnd(refusal(403), 'loading')).toBe(false);
    expect(isSessionEnd(refusal(401), 'signing-in')).toBe(false);
    expect(isSessionEnd(new SignInError('denied', 'no'), 'changing')).toBe(false);
  });
});
