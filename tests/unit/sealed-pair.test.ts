import { describe, expect, it } from 'bun:test';
import { createDecipheriv, hkdfSync } from 'node:crypto';
import { decryptPair, encryptPair, refreshTokenHash } from '../../src/gateway/refresh/sealed-pair.ts';

const TIMES = { expiresAt: 1_700_000_000_000, renewedAt: 1_700_000_000_000 };
const PAIR = { accessToken: 'access-token', refreshToken: 'next-refresh-token', ...TIMES };

describe('encryptPair', () => {
  it('gives the pair back to a holder of the spent refresh token only', async () => {
    const sealed = await encryptPair(PAIR, 'spent');
    expect(await decryptPair(sealed, 'spent')).toEqual(PAIR);
    for (const token of ['other', PAIR.refreshToken, PAIR.accessToken, '']) {
      expect(await decryptPair(sealed, token)).toBeUndefined();
    }
  });

  it('opens nothing that was changed, cut or never sealed', async () => {
    const sealed = await encryptPair(PAIR, 'spent');
    const bytes = Buffer.from(sealed, 'base64url');
    for (let at = 0; at < bytes.length; at += 7) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(await decryptPair(changed.toString('base64url'), 'spent')).toBeUndefined();
    }
    for (const cut of ['', sealed.slice(0, 20), sealed.slice(0, -2), 'nonsense']) {
      expect(await decryptPair(cut, 'spent')).toBeUndefined();
    }
  });

  it('takes its key from the token and not from the hash, which every reader of the store knows', async () => {
    const bytes = Buffer.from(await encryptPair(PAIR, 'spent'), 'base64url');
    const decryptWith = (secret: string) => {
      const key = hkdfSync('sha256', secret, '', 'music-gateway: successor of a refresh token', 32);
      const decipher = createDecipheriv('aes-256-gcm', new Uint8Array(key), bytes.subarray(0, 12));
      decipher.setAuthTag(bytes.subarray(12, 28));
      return decipher.update(bytes.subarray(28), undefined, 'utf8') + decipher.final('utf8');
    };
    expect(JSON.parse(decryptWith('spent'))).toEqual(PAIR);
    expect(() => decryptWith(refreshTokenHash('spent'))).toThrow();
  });

  it('never seals the same pair to the same text, nor shows a token in it', async () => {
    const sealed = await encryptPair(PAIR, 'spent');
    expect(await encryptPair(PAIR, 'spent')).not.toBe(sealed);
    const bytes = Buffer.from(sealed, 'base64url').toString('latin1');
    for (const secret of ['access-token', 'next-refresh-token', 'spent']) expect(bytes).not.toContain(secret);
  });
});

it('refreshTokenHash is the same for the same token only, and does not show it', () => {
  expect(refreshTokenHash('token')).toBe(refreshTokenHash('token'));
  expect(refreshTokenHash('token')).not.toBe(refreshTokenHash('Token'));
  expect(refreshTokenHash('token')).toMatch(/^[\w-]{43}$/);
});
