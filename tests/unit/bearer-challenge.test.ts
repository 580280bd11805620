import { expect, it } from 'bun:test';
import { bearerChallenge, mayNeedNewToken } from '../../src/gateway/http/bearer-challenge.ts';

const STEP_UP = 'Bearer error="insufficient_user_authentication"';

/** The challenge of a 401 with these lines, and whether a new token may help. */
function read(...lines: string[]) {
  const headers = new Headers(lines.map((line): [string, string] => ['www-authenticate', line]));
  const header = headers.get('www-authenticate') ?? '';
  return [bearerChallenge(header), mayNeedNewToken({ status: 401, headers })];
}

const E = 'Bearer error="e"';

it.each([
  [['bEARER  ERROR = e ,scope="a b"'], `${E}, scope="a b"`],
  [['Bearer realm="r", error="e", error_uri="http://upstream/", max_age=5'], `${E}, max_age="5", realm="r"`],
  [['Bearer error="e", realm="a \\"b\\" \\\\ \\c"'], `${E}, realm="a \\"b\\" \\\\ c"`],
  [[`Basic realm="a, Bearer error=\\"invalid_token\\"", ${STEP_UP}`], STEP_UP],
  [[`${STEP_UP}, Digest realm="r", qop="auth, auth-int", nonce=abc`], STEP_UP],
  [[`Negotiate, NTLM TlRMTVNTUAAC==, ${STEP_UP} ,, `], STEP_UP],
  [[STEP_UP, E], `${STEP_UP}, ${E}`],
])('a challenge with another error is relayed, and needs no new token: %j', (lines, expected) => {
  expect(read(...lines)).toEqual([expected, false]);
});

it.each([
  ...['Bearer realm="r"', 'Bearer error=""', `Bearer error="invalid_token", ${STEP_UP}`],
  'Bearer realm="error=insufficient_scope"',
  ...['Basic realm="r", error="e"', 'Bearer-X error="e"'],
  // Malformed:
  ...['', 'error="e"', 'Bearer error="e\\"', 'Bearer error="e" x', 'Bearer error="a", error="b"'],
  ...['Bearer error="a\tb"', 'Bearer error="é"', 'Bearer error=a b', `${STEP_UP}; Bearer`],
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
    for (const unit of units) read((start + unit.repeat(4096)).slice(0, 4096));
  }
}, 20_000);
