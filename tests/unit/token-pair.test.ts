import { expect, it } from 'bun:test';
import type { TokenProblem } from '../../src/gateway/record/request-record.ts';
import { readTokenPair } from '../../src/gateway/upstream/token-pair.ts';

const A = { access_token: 'a' };
const R = { refresh_token: 'r' };
const PAIR = { ...A, ...R };

// That only a success has one: integration/session/sign-in.test.ts.
/** What is read from a response with this body: a text, or anything else as JSON. */
function pairIn(body: unknown, status = 200) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return readTokenPair({ status, headers: new Headers(), body: text ? Buffer.from(text) : null });
}

it.each<[where: string, status: number, body: unknown, seconds: number]>([
  ['the top level', 200, PAIR, 900],
  ['any success', 201, { ...PAIR, expires_in: 120 }, 120],
  ['data, with its lifetime', 200, { data: { ...PAIR, expires_in: 60 }, expires_in: 7 }, 60],
  ['data, with its lifetime beside it', 200, { data: PAIR, expires_in: 60 }, 60],
  ['the top level, beside a pair in data', 200, { ...PAIR, data: { ...R, access_token: 'x' } }, 900],
])('a token pair is read from %s', (_, status, body, expiresInSeconds) => {
  expect(pairIn(body, status)).toEqual({ pair: { accessToken: 'a', refreshToken: 'r', expiresInSeconds } });
});

it.each<[texts: string[], seconds: number]>([
  [['1'], 1],
  [['1200', '"1200"', '1200.9'], 1200],
  [['34560000', '34560001', '1e300', '1e999'], 34_560_000],
  [['0', 'null', '"soon"', '{"valueOf":1,"toString":1}', '-1', '0.5'], 900],
])('a token pair with an expires_in of %j lasts %i seconds', (texts, seconds) => {
  for (const text of texts) {
    const body = `{"access_token":"a","refresh_token":"r","expires_in":${text}}`;
    expect(pairIn(body).pair?.expiresInSeconds, text).toBe(seconds);
  }
});

const NO_TOKENS = ['', 1, ['r'], 'a b', 'a\r\nset-cookie: x=y', 'a\x7f', 'é'];

it.each<[problem: TokenProblem, bodies: unknown[]]>([
  ['no JSON object', ['', 'not JSON', '{"access_token":"a","refresh_token":"r"', null, [], [PAIR], '"a"']],
  [
    'no access_token',
    [{}, { accessToken: 'a', refreshToken: 'r' }, R, { data: [PAIR] }, { data: { data: PAIR } }],
  ],
  ['no access_token', ['{"__proto__":{"access_token":"a","refresh_token":"r"}}', { data: R }]],
  ['no refresh_token', [A, { data: A }, { ...A, data: { id: 1 } }, { ...A, data: R }]],
  ['invalid access_token', NO_TOKENS.map((token) => ({ ...R, access_token: token }))],
  ['invalid refresh_token', NO_TOKENS.map((token) => ({ ...A, refresh_token: token }))],
])('a token pair is not found, because of %s, in %j', (problem, bodies) => {
  for (const body of bodies) expect(pairIn(body), JSON.stringify(body)).toEqual({ problem });
});
