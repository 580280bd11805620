import { expect, it } from 'bun:test';
import { bearerChallenge, mayNeedNewToken } from '../../src/gateway/http/bearer-challenge.ts';
import { expectLinear } from '../support/linear-time.ts';

const STEP_UP = 'Bearer error="insufficient_user_authentication"';

/** The challenge of a 401 with these lines, and whether a new token may help. */
function read(...lines: string[]) {
  const headers = new Headers(lines.map((line): [string, string] => ['www-authenticate', line]));
  const header = headers.get('www-authenticate') ?? '';
  return [bearerChallenge(header), mayNeedNewToken({ status: 401, headers })];
}

const ERROR = 'error="insufficient_scope"';
const E = 'Bearer error="insufficient_scope"';

it.each([
  [['bEARER  ERROR = insufficient_scope ,scope="a b"'], `${E}, scope="a b"`],
  [[`Bearer realm="r", ${ERROR}, error_uri="http://upstream/", max_age=5`], `${E}, max_age="5", realm="r"`],
  [[`${E}, realm="a \\"b\\" \\\\ \\c"`], `${E}, realm="a \\"b\\" \\\\ c"`],
  [[`Basic realm="a, Bearer error=\\"invalid_token\\"", ${STEP_UP}`], STEP_UP],
  [[`${STEP_UP}, Digest realm="r", qop="auth, auth-int", nonce=abc`], STEP_UP],
  [[`Negotiate, NTLM TlRMTVNTUAAC==, ${STEP_UP} ,, `], STEP_UP],
  [[STEP_UP, E], `${STEP_UP}, ${E}`],
])('a challenge that asks for more than a new token is relayed: %j', (lines, expected) => {
  expect(read(...lines)).toEqual([expected, false]);
});

it.each([
  ...['Bearer realm="r"', 'Bearer error=""', `Bearer error="invalid_token", ${STEP_UP}`],
  'Bearer realm="error=insufficient_scope"',
  ...[`Basic realm="r", ${ERROR}`, `Bearer-X ${ERROR}`, `${E}, Bearer error="expired_token"`],
  ...['Bearer error="Insufficient_Scope"', 'Bearer error="invalid_request"', 'Bearer error="expired_token"'],
  // Malformed:
  ...['', ERROR, 'Bearer error="insufficient_scope\\"', `${E} x`, `${E}, ${ERROR}`],
  ...[`${E}, realm="a\tb"`, `${E}, realm="é"`, `${E}, realm=a b`, `${STEP_UP}; Bearer`],
])('a new token may help, and nothing is relayed: %s', (header) => {
  expect(read(header)).toEqual([undefined, true]);
});

it('a header of more than 4,096 characters is not read', () => {
  expect(read(E + ','.repeat(4096))).toEqual([undefined, true]);
});

// A pattern that can match in two ways would take minutes.
it('a hostile header is judged at once', () => {
  const units = ['a', 'a ', 'a=', 'a="', '"', '\\', 'a,', ' ', ',', 'a b=', 'a=a ', 'a="\\"', '=', 'a a'];
  for (const start of ['', 'Bearer ', 'Bearer error="', 'Bearer error="e", ']) {
    for (const unit of units)
      expectLinear((bytes) => read((start + unit.repeat(bytes)).slice(0, bytes)), 4096, start + unit);
  }
});
