import { describe, expect, it } from 'bun:test';
import { GatewayRequestError } from '../../../src/client/gateway-request.ts';
import { SignInError } from '../../../src/client/sign-in.ts';
import { describeFailure, isSessionEnd } from '../../../src/demo/studio/failure.ts';

interface Answer {
  readonly retryIsSafe?: boolean;
  readonly retryAfterSeconds?: number;
}

function refusal(status: number, { retryIsSafe = true, ...rest }: Answer = {}) {
  return new GatewayRequestError('The gateway said no.', { status, retryIsSafe, ...rest });
}

const said = 'The gateway said no.';
const NO_ANSWER = refusal(0);

describe('what a failure is told as', () => {
  it('is the gateway’s message, and advice by status', () => {
    expect(describeFailure(refusal(402), 'ordering', true)).toEqual({ said, advice: 'noCredits' });
    expect(describeFailure(refusal(404), 'changing', true)).toEqual({ said, advice: 'gone' });
    expect(describeFailure(refusal(400), 'ordering', true)).toEqual({ said, advice: 'later' });
  });

  it('tells how long to wait when the gateway does', () => {
    const busy = refusal(503, { retryAfterSeconds: 5 });
    expect(describeFailure(busy, 'ordering', true)).toEqual({
      said,
      advice: 'busy',
      values: { seconds: 5 },
    });
    const atOnce = refusal(503, { retryAfterSeconds: 0 });
    expect(describeFailure(atOnce, 'ordering', true)).toMatchObject({ advice: 'busy' });
  });

  it('warns of a second track after an order whose outcome is not known, whatever the status', () => {
    for (const status of [0, 500, 502, 504]) {
      const unclear = refusal(status, { retryIsSafe: false });
      expect(describeFailure(unclear, 'ordering', true)).toEqual({ advice: 'uncertain' });
    }
  });

  it('does not warn of it when something else than an order was under way', () => {
    const unclear = refusal(502, { retryIsSafe: false });
    expect(describeFailure(unclear, 'changing', true)).toEqual({ said, advice: 'later' });
  });

  it('says of a track that broke off that it will be in the library, whatever broke it', () => {
    const broken = refusal(0, { retryIsSafe: false });
    expect(describeFailure(broken, 'receiving', true)).toEqual({ advice: 'interrupted' });
    expect(describeFailure(broken, 'receiving', false)).toEqual({ advice: 'interrupted' });
  });

  it('says that the page tries again by itself where it does', () => {
    expect(describeFailure(refusal(502), 'loading', true)).toEqual({ said, advice: 'retrying' });
    expect(describeFailure(refusal(404), 'loading', true)).toEqual({ said, advice: 'retrying' });
    expect(describeFailure(NO_ANSWER, 'loading', true)).toEqual({ advice: 'notReached' });
  });

  it('tells an unreachable gateway from a browser that is offline', () => {
    expect(describeFailure(NO_ANSWER, 'changing', true)).toEqual({ advice: 'unreachable' });
    expect(describeFailure(NO_ANSWER, 'changing', false)).toEqual({ advice: 'offline' });
    expect(describeFailure(NO_ANSWER, 'loading', false)).toEqual({ advice: 'offline' });
    expect(describeFailure(refusal(500), 'changing', false)).toEqual({ said, advice: 'later' });
  });

  it('is the end of the session for a 401, before anything else', () => {
    const ended = refusal(401, { retryIsSafe: false });
    expect(isSessionEnd(ended, 'receiving')).toBe(true);
    expect(describeFailure(ended, 'receiving', false)).toEqual({ advice: 'sessionEnded' });
    expect(isSessionEnd(refusal(403), 'loading')).toBe(false);
    expect(isSessionEnd(new SignInError('denied', 'no'), 'changing')).toBe(false);
  });

  it('is no end of a session while signing in, when there is none: the gateway’s message tells more', () => {
    const refused = refusal(401);
    expect(isSessionEnd(refused, 'signing-in')).toBe(false);
    expect(describeFailure(refused, 'signing-in', true)).toEqual({ said, advice: 'signInAgain' });
  });

  it.each([
    ['denied', 'signInDenied'],
    ['not_begun', 'signInStale'],
    ['invalid_response', 'signInInvalid'],
  ] as const)('of a sign-in that was %s says how to begin again', (code, advice) => {
    expect(describeFailure(new SignInError(code, 'no'), 'changing', true)).toEqual({ advice });
  });

  it('is never the message of an error that nobody has foreseen', () => {
    expect(describeFailure(new TypeError('x is not a function'), 'ordering', true)).toEqual({
      advice: 'unexpected',
    });
    expect(describeFailure('a string', 'loading', false)).toEqual({ advice: 'unexpected' });
  });
});
