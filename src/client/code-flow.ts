/** The browser's part of the sign-in: the authorization code flow with PKCE. The gateway exchanges the code. */

import {
  AuthorizationResponseError,
  calculatePKCECodeChallenge,
  generateRandomCodeVerifier,
  generateRandomState,
  validateAuthResponse,
} from 'oauth4webapi';
import { type GatewayConnection, isRecord, sendOnly } from './gateway-request.ts';
import { type IdentityProvider, SignInError, type SignInStorage } from './sign-in.ts';

/** Stored while the user is at the identity provider. */
interface BegunSignIn {
  readonly state: string;
  readonly codeVerifier: string;
  readonly issuer: string;
  readonly clientId: string;
}

const STORAGE_KEY = 'music-gateway.sign-in';

/**
 * Creates and stores a verifier and a state, and returns the identity provider's address for the user.
 *
 * @see RFC 6749 section 4.1.1, RFC 7636 section 4.3, OpenID Connect Core 1.0 section 3.1.2.1
 */
export async function beginSignIn(storage: SignInStorage, provider: IdentityProvider): Promise<URL> {
  const { issuer, authorizationEndpoint, clientId, redirectUri, scope = 'openid profile' } = provider;
  const { prompt, acrValues, maxAgeSeconds, extra } = provider;
  const state = generateRandomState();
  const codeVerifier = generateRandomCodeVerifier();
  const codeChallenge = await calculatePKCECodeChallenge(codeVerifier);
  const begun: BegunSignIn = { state, codeVerifier, issuer, clientId };
  storage.setItem(STORAGE_KEY, JSON.stringify(begun));
  const url = new URL(authorizationEndpoint);
  const parameters = {
    ...extra,
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope,
    state,
    code_challenge: codeChallenge,
    code_challenge_method: 'S256',
    ...(prompt && { prompt }),
    ...(acrValues && { acr_values: acrValues }),
    ...(maxAgeSeconds !== undefined && { max_age: `${maxAgeSeconds}` }),
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url;
}

/**
 * Checks that the response belongs to the sign-in that was begun here, and has the gateway exchange its code. The stored
 * sign-in is removed, whatever the outcome.
 *
 * @throws SignInError when the response cannot be used
 * @throws GatewayRequestError when the gateway refuses the code
 * @see RFC 6749 section 4.1.2 and 10.12, RFC 9207 section 2.4
 */
export async function completeSignIn(
  connection: GatewayConnection,
  storage: SignInStorage,
  address: URL,
): Promise<void> {
  const begun = takeBegun(storage);
  if (!begun) throw new SignInError('not_begun', 'No sign-in was begun in this tab.');
  const body = { code: validatedCode(begun, address), code_verifier: begun.codeVerifier };
  await sendOnly(connection, '/api/auth/idp', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}

/** The library's own errors contain the whole response with its code, so they are not passed on. */
function validatedCode({ issuer, clientId, state }: BegunSignIn, address: URL): string {
  try {
    const parameters = validateAuthResponse({ issuer }, { client_id: clientId }, address, state);
    const [code, ...more] = parameters.getAll('code');
    if (code && !more.length) return code;
  } catch (error) {
    if (error instanceof AuthorizationResponseError) {
      throw new SignInError('denied', `The identity provider refused: ${error.error}`);
    }
  }
  throw new SignInError(
    'invalid_response',
    'This response does not belong to the sign-in that was begun here.',
  );
}

function takeBegun(storage: SignInStorage): BegunSignIn | undefined {
  const stored = storage.getItem(STORAGE_KEY);
  storage.removeItem(STORAGE_KEY);
  if (stored === null) return undefined;
  const { state, codeVerifier, issuer, clientId } = asRecord(stored);
  const isWhole =
    typeof state === 'string' &&
    typeof codeVerifier === 'string' &&
    typeof issuer === 'string' &&
    typeof clientId === 'string';
  return isWhole ? { state, codeVerifier, issuer, clientId } : undefined;
}

function asRecord(json: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(json);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}
