import { describe, expect, it } from 'bun:test';
import { GatewayRequestError } from '../../../src/client/gateway-request.ts';
import { RecoveryError } from '../../../src/client/recovery-error.ts';
import { SignInError } from '../../../src/client/sign-in.ts';
import { english } from '../../../src/demo/studio/english.ts';
import { type Doing, describeFailure, isSessionEnd } from '../../../src/demo/studio/failure.ts';
import { createNotice, type Message } from '../../../src/demo/studio/notice.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { openPart } from './page.ts';

const said = 'The gateway said no.';

function refusal(status: number, details: { retryIsSafe?: boolean; retryAfterSeconds?: number } = {}) {
  return new GatewayRequestError(said, { status, retryIsSafe: true, ...details });
}

/** A generation that could not be recovered. */
function loss(creationId: string | null, cause?: unknown) {
  return new RecoveryError('refused', { creationId, idempotencyKey: 'a-key' }, cause);
}

const UNSAFE = { retryIsSafe: false };
const AT_ONCE = { retryAfterSeconds: 0 };

describe('the advice after a failure', () => {
  it.each<[what: string, error: unknown, doing: Doing, isOnline: boolean, message: Message]>([
    ['402', refusal(402), 'ordering', true, { advice: 'noCredits' }],
    ['404', refusal(404), 'changing', true, { said, advice: 'gone' }],
    ['a response, though offline,', refusal(500), 'changing', false, { said, advice: 'later' }],
    ['a change that may have been made', refusal(502, UNSAFE), 'changing', true, { said, advice: 'later' }],
    ['a load of what is gone', refusal(404), 'loading', true, { said, advice: 'retrying' }],
    ['a load without a response', refusal(0), 'loading', true, { advice: 'notReached' }],
    ['a change without a response', refusal(0), 'changing', true, { advice: 'unreachable' }],
    ['a change offline', refusal(0), 'changing', false, { advice: 'offline' }],
    ['an order without a response', refusal(0, UNSAFE), 'ordering', true, { advice: 'uncertain' }],
    ['an order that failed with 500', refusal(500, UNSAFE), 'ordering', true, { advice: 'uncertain' }],
    ['a broken track offline', refusal(0, UNSAFE), 'receiving', false, { advice: 'interrupted' }],
    ['a lost track', loss('c-1', refusal(404)), 'receiving', true, { advice: 'interrupted' }],
    ['a lost order', loss(null, refusal(402)), 'ordering', true, { advice: 'uncertain' }],
    ['the end of the session', refusal(401, UNSAFE), 'receiving', false, { advice: 'sessionEnded' }],
    ['a refused sign-in', refusal(401), 'signing-in', true, { said, advice: 'signInAgain' }],
    ['a denied sign-in', new SignInError('denied', ''), 'changing', true, { advice: 'signInDenied' }],
    ['a stale sign-in', new SignInError('not_begun', ''), 'changing', true, { advice: 'signInStale' }],
    ['a bad one', new SignInError('invalid_response', ''), 'changing', true, { advice: 'signInInvalid' }],
    ['503', refusal(503, AT_ONCE), 'ordering', true, { said, advice: 'busy', values: { seconds: 0 } }],
    ['a bug', new TypeError('x is not a function'), 'ordering', true, { advice: 'unexpected' }],
  ])('fits %s', (_what, error, doing, isOnline, message) => {
    expect(describeFailure(error, doing, isOnline)).toEqual(message);
  });

  it('ends a session for a 401, except while signing in, when there is none', () => {
    expect(isSessionEnd(refusal(401), 'receiving')).toBe(true);
    expect(isSessionEnd(loss('c-1', refusal(401)), 'receiving')).toBe(true);
    expect(isSessionEnd(refusal(403), 'loading')).toBe(false);
    expect(isSessionEnd(refusal(401), 'signing-in')).toBe(false);
    expect(isSessionEnd(new SignInError('denied', 'no'), 'changing')).toBe(false);
  });
});

function openNotice() {
  const { root, text, shown } = openPart('notice');
  return { root, text, notice: createNotice(root, { text }), alert: () => !root.hidden && shown('alert') };
}

describe('the notice', () => {
  it('shows the latest message in the language of the page until it is dismissed', () => {
    const { root, text, alert, notice } = openNotice();
    expect(alert()).toBe(false);
    notice.show({ said: 'No credits.', advice: 'noCredits' });
    expect(alert()).toBe(`No credits. ${english.noCredits}`);
    notice.show({ advice: 'busy', values: { seconds: 5 } });
    expect(alert()).toBe('Try again in 5 seconds.');
    text.choose('sw');
    expect(alert()).toBe('Jaribu tena baada ya sekunde 5.');
    part(root, 'dismiss').click();
    expect([alert(), root.querySelector('[role=alert]')?.textContent.trim()]).toEqual([false, '']);
  });

  it('keeps a lasting message when a passing one is shown or cleared', () => {
    const { alert, notice } = openNotice();
    notice.showPassing({ advice: 'retrying' });
    expect(alert()).toBe('Trying again by itself.');
    notice.clearPassing();
    expect(alert()).toBe(false);
    notice.show({ advice: 'later' });
    notice.showPassing({ advice: 'retrying' });
    notice.clearPassing();
    expect(alert()).toBe('Try again in a moment.');
    notice.clear();
    notice.showPassing({ advice: 'notReached' });
    expect(alert()).toStartWith('The gateway does not answer.');
  });
});
