/** The upstream's routes for sign-in, refresh and logout. */

import { Type } from '@sinclair/typebox';
import { Account } from './account.ts';
import { ApiError } from './api-error.ts';
import { checkIdentity } from './identity-check.ts';
import { readJson } from './json-body.ts';
import { methods, type RequireAccount } from './route.ts';
import type { TokenFamilies, TokenPair } from './token-families.ts';

export interface SessionOptions {
  identityProviderUrl: string;
  families: TokenFamilies;
  /** The credits of a new account. */
  startingBalance: number;
  now: () => number;
}

export interface SessionCounts {
  signIns: number;
  /** The number of refresh tokens exchanged for a new pair. */
  refreshes: number;
  /** The number of refresh tokens refused because they were unknown, revoked or spent. */
  refusedRefreshes: number;
  logouts: number;
}

const token = Type.String({ pattern: '^[\\x21-\\x7e]+$' });
const signInBody = Type.Object({ access_token: token });
const refreshBody = Type.Object({ refresh_token: token });

export function createSessions({ identityProviderUrl, families, startingBalance, now }: SessionOptions) {
  const accounts = new Map<string, Account>();
  const counts: SessionCounts = { signIns: 0, refreshes: 0, refusedRefreshes: 0, logouts: 0 };

  const requireAccount: RequireAccount = (request) => {
    const account = accounts.get(families.accountOf(bearerToken(request)) ?? '');
    if (!account) throw unauthorized('A valid access token is required');
    return account;
  };

  const signIn = async (request: Request) => {
    const { access_token: accessToken } = await readJson(request, signInBody);
    const identity = await checkIdentity(identityProviderUrl, accessToken);
    const account = accounts.get(identity.id) ?? new Account(identity, now(), startingBalance);
    accounts.set(account.id, account);
    account.record({ type: 'sign_in', description: 'Signed in', at: now() });
    counts.signIns += 1;
    return tokenResponse(families.begin(account.id));
  };

  const refresh = async (request: Request) => {
    const { refresh_token: refreshToken } = await readJson(request, refreshBody);
    const pair = families.rotate(refreshToken);
    if (!pair) {
      counts.refusedRefreshes += 1;
      throw unauthorized('This refresh token is not valid');
    }
    counts.refreshes += 1;
    return tokenResponse(pair);
  };

  const logOut = async (request: Request) => {
    requireAccount(request);
    const { refresh_token: refreshToken } = await readJson(request, refreshBody);
    families.revoke(bearerToken(request));
    families.revoke(refreshToken);
    counts.logouts += 1;
    return new Response(null, { status: 204 });
  };

  return {
    counts,
    requireAccount,
    routes: {
      '/v1/auth/idp': methods({ POST: signIn }),
      '/v1/auth/refresh': methods({ POST: refresh }),
      '/v1/auth/logout': methods({ POST: logOut }),
    },
  };
}

/** @see RFC 6750 section 2.1 */
function bearerToken(request: Request): string {
  return /^Bearer +(\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1] ?? '';
}

function unauthorized(message: string): ApiError {
  return new ApiError(401, message, { 'WWW-Authenticate': 'Bearer' });
}

function tokenResponse(pair: TokenPair): Response {
  return Response.json(pair, { headers: { 'Cache-Control': 'no-store' } });
}
