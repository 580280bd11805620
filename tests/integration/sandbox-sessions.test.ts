/** The sandbox's upstream: sign-in, refresh with reuse detection, logout. */

import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import type { Sandbox } from '../../src/demo/sandbox/sandbox.ts';
import { postJson, readTokens, signIn, startTestSandbox } from '../support/sandbox-account.ts';

let sandbox: Sandbox;
let elapsedMs = 0;
beforeAll(async () => {
  // The clock stands still unless a test moves it.
  sandbox = await startTestSandbox({ now: () => elapsedMs });
});
afterAll(() => sandbox.stop());

function refresh(refreshToken: string): Promise<Response> {
  return postJson(`${sandbox.upstream.url}/v1/auth/refresh`, { refresh_token: refreshToken });
}

async function statusOfProfile(accessToken: string): Promise<number> {
  const headers = { Authorization: `Bearer ${accessToken}` };
  return (await fetch(`${sandbox.upstream.url}/v1/me`, { headers })).status;
}

describe('upstream, POST /v1/auth/idp', () => {
  it('gives tokens that hold a pipe, a plus, a slash and an equals sign', async () => {
    const tokens = await signIn(sandbox, 'Amina');

    expect(tokens.expires_in).toBe(60);
    for (const token of [tokens.access_token, tokens.refresh_token]) {
      expect(token).toMatch(/^\d+\|[A-Za-z0-9+/]+=$/);
      expect(token).toContain('+');
      expect(token).toContain('/');
    }
    expect(await statusOfProfile(tokens.access_token)).toBe(200);
  });

  it('refuses a forged identity token', async () => {
    const response = await postJson(`${sandbox.upstream.url}/v1/auth/idp`, { access_token: 'forged' });
    expect(response.status).toBe(401);
    expect(await response.json()).toEqual({
      error: { message: 'The identity provider does not know this access token' },
    });
  });

  it.each(['', '{}', '{"access_token":""}', '{"access_token":"line\\nbreak"}'])(
    'refuses the body %j',
    async (body) => {
      const response = await fetch(`${sandbox.upstream.url}/v1/auth/idp`, { method: 'POST', body });
      expect(response.status).toBe(body === '' ? 400 : 422);
    },
  );
});

describe('upstream, POST /v1/auth/refresh', () => {
  it('renews a session whose access token has run out', async () => {
    const old = await signIn(sandbox, 'Amina');
    elapsedMs += 59_999;
    expect(await statusOfProfile(old.access_token)).toBe(200);
    elapsedMs += 1;
    expect(await statusOfProfile(old.access_token)).toBe(401);

    const before = sandbox.upstream.counts().refreshes;
    const response = await refresh(old.refresh_token);

    expect(response.status).toBe(200);
    const renewed = await readTokens(response);
    expect(renewed.refresh_token).not.toBe(old.refresh_token);
    expect(await statusOfProfile(renewed.access_token)).toBe(200);
    expect(sandbox.upstream.counts().refreshes).toBe(before + 1);
  });

  it('revokes the whole family when a spent refresh token is presented', async () => {
    const stolen = await signIn(sandbox, 'Amina');
    const bystander = await signIn(sandbox, 'Amina');
    const renewed = await readTokens(await refresh(stolen.refresh_token));

    expect((await refresh(stolen.refresh_token)).status).toBe(401);

    expect(await statusOfProfile(renewed.access_token)).toBe(401);
    expect(await statusOfProfile(stolen.access_token)).toBe(401);
    expect((await refresh(renewed.refresh_token)).status).toBe(401);
    expect(await statusOfProfile(bystander.access_token)).toBe(200);
  });

  it('refuses a made-up token, and takes it for no reuse', async () => {
    const tokens = await signIn(sandbox, 'Amina');
    const [id] = tokens.refresh_token.split('|');
    const before = sandbox.upstream.counts().refusedRefreshes;

    expect((await refresh(`${id}|made+up/==`)).status).toBe(401);

    expect(sandbox.upstream.counts().refusedRefreshes).toBe(before + 1);
    expect(await statusOfProfile(tokens.access_token)).toBe(200);
    expect((await refresh(tokens.refresh_token)).status).toBe(200);
  });
});

describe('upstream, POST /v1/auth/logout', () => {
  it('ends the access token and the refresh token', async () => {
    const tokens = await signIn(sandbox, 'Amina');
    const other = await signIn(sandbox, 'Amina');
    const body = { refresh_token: tokens.refresh_token };
    const headers = { Authorization: `Bearer ${tokens.access_token}` };

    const response = await postJson(`${sandbox.upstream.url}/v1/auth/logout`, body, headers);

    expect(response.status).toBe(204);
    expect(await statusOfProfile(tokens.access_token)).toBe(401);
    expect((await refresh(tokens.refresh_token)).status).toBe(401);
    expect(await statusOfProfile(other.access_token)).toBe(200);
  });

  it('refuses a caller without an access token', async () => {
    const tokens = await signIn(sandbox, 'Amina');
    const body = { refresh_token: tokens.refresh_token };
    expect((await postJson(`${sandbox.upstream.url}/v1/auth/logout`, body)).status).toBe(401);
    expect(await statusOfProfile(tokens.access_token)).toBe(200);
  });
});

describe('Upstream.expireAccessTokens()', () => {
  it('lets access tokens run out and keeps refresh tokens good', async () => {
    const tokens = await signIn(sandbox, 'Amina');
    sandbox.upstream.expireAccessTokens();
    expect(await statusOfProfile(tokens.access_token)).toBe(401);
    expect((await refresh(tokens.refresh_token)).status).toBe(200);
  });
});

describe('upstream, any path', () => {
  it.each([
    ['GET', '/v1/me', 401],
    ['POST', '/v1/music', 401],
    ['GET', '/v1/nothing', 404],
    ['DELETE', '/v1/me', 405],
  ])('answers %s %s with %i and an error message', async (method, path, status) => {
    const response = await fetch(`${sandbox.upstream.url}${path}`, { method });
    expect(response.status).toBe(status);
    expect(response.headers.get('allow')).toBe(status === 405 ? 'GET, HEAD' : null);
    expect(await response.json()).toEqual({ error: { message: expect.any(String) } });
  });
});
