import { describe, expect, it } from 'bun:test';
import { readTokenPair } from '../../src/gateway/upstream/token-pair.ts';

const A = { access_token: 'a' };
const R = { refresh_token: 'r' };
const PAIR = { ...A, ...R };

/** The pair in a response with this body: a text, or anything else as JSON. */
function pairIn(body: unknown, status = 200) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const bytes = text ? new TextEncoder().encode(text) : null;
  return readTokenPair({ status, headers: new Headers(), body: bytes });
}

describe('a token pair', () => {
  it.each<[where: string, status: number, body: unknown, seconds: number]>([
    ['the top level', 200, PAIR, 900],
    ['any success', 201, { ...PAIR, expires_in: 120 }, 120],
    ['data, with its lifetime', 200, { data: { ...PAIR, expires_in: 60 }, expires_in: 7 }, 60],
    ['the top level, beside a pair in data', 200, { ...PAIR, data: { ...R, access_token: 'x' } }, 900],
  ])('is read from %s', (_, status, body, expiresInSeconds) => {
    expect(pairIn(body, status)).toEqual({ accessToken: 'a', refreshToken: 'r', expiresInSeconds });
  });

  it.each<[texts: string[], seconds: number]>([
    [['1'], 1],
    [['1200', '"1200"', '1200.9'], 1200],
    [['34560000', '34560001', '1e300', '1e999'], 34_560_000],
    [['0', 'null', '"soon"', '{"valueOf":1,"toString":1}', '-1', '0.5'], 900],
  ])('with an expires_in of %j lasts %i seconds', (texts, seconds) => {
    for (const text of texts) {
      const body = `{"access_token":"a","refresh_token":"r","expires_in":${text}}`;
      expect(pairIn(body)?.expiresInSeconds, text).toBe(seconds);
    }
  });

  const NO_TOKENS = ['', 1, ['r'], 'a b', 'a\r\nset-cookie: x=y', 'a\x7f', 'é'];

  it.each<[why: string, bodies: unknown[]]>([
    ['it is not there', [{}, null, [], '"access-1"', { accessToken: 'a', refreshToken: 'r' }]],
    ['only half of it is there', [A, R, { ...A, data: R }, { data: A }]],
    ['it is in the wrong place', [[PAIR], { data: [PAIR] }, { data: { data: PAIR } }]],
    ['the body is no JSON', ['', 'not JSON', '{"access_token":"a","refresh_token":"r"']],
    ['it is in a prototype', ['{"__proto__":{"access_token":"a","refresh_token":"r"}}']],
    ['the access token is invalid', NO_TOKENS.map((token) => ({ ...R, access_token: token }))],
    ['the refresh token is invalid', NO_TOKENS.map((token) => ({ ...A, refresh_token: token }))],
  ])('is not found when %s', (_, bodies) => {
    for (const body of bodies) expect(pairIn(body), JSON.stringify(body)).toBeUndefined();
  });

  it('is read only from a success', () => {
    for (const status of [302, 400, 500]) expect(pairIn(PAIR, status)).toBeUndefined();
  });
});
