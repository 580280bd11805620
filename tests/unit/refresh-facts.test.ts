import { describe, expect, it } from 'bun:test';
import { hkdfSync } from 'node:crypto';
import { unseal } from '../../src/gateway/crypto/seal.ts';
import { factKey, factOf, markKey, pairIn } from '../../src/gateway/refresh/facts.ts';
import type { Kept } from '../../src/gateway/refresh/store.ts';

const PAIR = { accessToken: 'access-token', refreshToken: 'next-refresh-token', expiresInSeconds: 900 };
const NOW = 1_700_000_000_000;

async function renewal(): Promise<Kept> {
  const fact = await factOf({ kind: 'renewed', pair: PAIR }, 'spent');
  return { ...(fact ?? expect.unreachable()), writtenAt: NOW };
}

describe('the fact of a renewal', () => {
  it('gives the pair to a holder of the spent refresh token only, and not when it was changed', async () => {
    const fact = await renewal();
    expect(await pairIn(fact, 'spent', NOW)).toEqual(PAIR);
    for (const token of ['other', PAIR.refreshToken, ''])
      expect(await pairIn(fact, token, NOW)).toBeUndefined();
    for (const detail of [fact.detail.slice(0, -4), 'nonsense'])
      expect(await pairIn({ ...fact, detail }, 'spent', NOW)).toBeUndefined();
    expect(await pairIn({ ...fact, kind: 'ended' }, 'spent', NOW)).toBeUndefined();
  });

  it('takes its key from the token and not from its hash, which every reader of the store knows', async () => {
    const { detail } = await renewal();
    const key = hkdfSync('sha256', 'spent', '', 'music-gateway: successor of a refresh token', 32);
    expect(JSON.parse((await unseal(detail, new Uint8Array(key))) ?? '')).toEqual(PAIR);
  });

  it('is never the same text, and does not show a token', async () => {
    const { detail } = await renewal();
    expect((await renewal()).detail).not.toBe(detail);
    const bytes = detail + detail.split('.').map((part) => Buffer.from(part, 'base64url').toString('latin1'));
    for (const secret of ['access-token', 'next-refresh-token', 'spent']) expect(bytes).not.toContain(secret);
  });
});

it.each([factKey, markKey])('%p is the same for the same token only, and does not show it', (keyOf) => {
  expect(keyOf('token')).toBe(keyOf('token'));
  expect(keyOf('token')).not.toBe(keyOf('Token'));
  expect(keyOf('token')).toMatch(/^(fact|mark):[\w-]{43}$/);
});
