/** What a page has to know of a sign-in before the code flow itself is loaded. */

/** Where the user signs in, and as which OAuth client. */
export interface IdentityProvider {
  /** The issuer identifier, which the provider may add to its responses (RFC 9207 section 2). */
  readonly issuer: string;
  readonly authorizationEndpoint: string;
  readonly clientId: string;
  /** Exactly as registered, and as the gateway has it in `IDP_REDIRECT_URI`. */
  readonly redirectUri: string;
  /** By default, `openid profile`. */
  readonly scope?: string;
  /**
   * Makes the provider ask the user, or never ask (`none`), instead of taking whoever is signed in there.
   *
   * @see OpenID Connect Core 1.0 section 3.1.2.1
   */
  readonly prompt?: 'login' | 'select_account' | 'consent' | 'none';
  /** How the user has to sign in: values that the provider defines, separated by spaces, the best one first. */
  readonly acrValues?: string;
  /** Makes the provider ask a user who has signed in there longer ago than this. */
  readonly maxAgeSeconds?: number;
  /** Further parameters of the authorization request, such as `audience` or `login_hint`. */
  readonly extra?: Readonly<Record<string, string>>;
}

/** The part of `Storage` that a sign-in needs. */
export interface SignInStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** A sign-in that failed before the gateway was called. */
export class SignInError extends Error {
  override readonly name = 'SignInError';
  /**
   * `denied`: the user or the identity provider refused. `not_begun`: this tab has no sign-in in progress.
   * `invalid_response`: the response does not belong to this sign-in, as when somebody else has made the link.
   */
  readonly code: 'denied' | 'not_begun' | 'invalid_response';

  constructor(code: SignInError['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** The parameters that an identity provider adds to the redirect URI. @see RFC 6749 section 4.1.2, RFC 9207 section 2 */
const RESPONSE_PARAMETERS = [
  'code',
  'state',
  'iss',
  'error',
  'error_description',
  'error_uri',
  'session_state',
];

/** Whether the identity provider has sent the user to this address. */
export function isSignInResponse({ searchParams }: URL): boolean {
  return searchParams.has('state') && (searchParams.has('code') || searchParams.has('error'));
}

/** Returns the address without the identity provider's parameters, because a code must not stay in the history. */
export function withoutResponse(address: URL): URL {
  const cleaned = new URL(address);
  for (const name of RESPONSE_PARAMETERS) cleaned.searchParams.delete(name);
  return cleaned;
}
