/** Checks whether the identity provider accepts the OAuth client and its authentication. */

import { randomBytes } from 'node:crypto';
import { isOutage } from '../gateway/http/proxy-status.ts';
import { type OAuthError, RequestRecord } from '../gateway/record/request-record.ts';
import type { IdentityProviderSettings } from '../gateway/settings/identity-provider-settings.ts';
import { exchangeCode } from '../gateway/upstream/exchange-code.ts';
import { DEADLINE_MS, type Finding, shownAddress } from './finding.ts';
import { failureText } from './http-probe.ts';

/**
 * Sends a code that does not exist: a provider that accepts the client refuses it with `invalid_grant`.
 *
 * @see RFC 6749 section 5.2
 */
export async function checkClient(provider: IdentityProviderSettings): Promise<Finding> {
  const record = new RequestRecord(new Request(provider.tokenUrl));
  const grant = {
    code: 'check-config',
    codeVerifier: randomBytes(32).toString('base64url'),
    redirectUri: provider.redirectUris[0] ?? '',
  };
  let failure: unknown;
  try {
    await exchangeCode(provider, DEADLINE_MS, grant, record);
  } catch (error) {
    failure = error;
  }
  return findingOf(provider, record, failure);
}

function findingOf(provider: IdentityProviderSettings, record: RequestRecord, failure: unknown): Finding {
  const endpoint = `the token endpoint ${shownAddress(provider.tokenUrl)}`;
  const status = record.calls.at(-1)?.outcome;
  if (typeof status !== 'number')
    return { level: 'error', text: `IDP_URL: ${endpoint} ${failureText(failure, record)}` };
  // A provider that has a problem of its own has not judged the client.
  switch (isOutage(status) ? undefined : record.oauthError) {
    case 'invalid_grant':
      return { level: 'ok', text: `IDP_CLIENT_ID: ${endpoint} accepts the client` };
    case 'invalid_client':
      return {
        level: 'error',
        text: `IDP_CLIENT_ID: ${endpoint} does not accept the client: ${advice(provider)}`,
      };
    case 'unauthorized_client':
    case 'unsupported_grant_type': {
      const text = `IDP_CLIENT_ID: ${endpoint} does not let the client use authorization codes: allow it there`;
      return { level: 'error', text };
    }
    default:
      return unclear(endpoint, status, record.oauthError);
  }
}

function unclear(endpoint: string, status: number, error: OAuthError | undefined): Finding {
  const found = `${endpoint} responds with ${status}${error ? ` and ${error}` : ''} to a code that does not exist`;
  if (error || isOutage(status)) {
    const level = status >= 500 ? 'error' : 'warning';
    return {
      level,
      text: `IDP_CLIENT_ID: ${found}, so it is not known whether it accepts the client: see its log`,
    };
  }
  return { level: 'error', text: `IDP_TOKEN_URL: ${found}: is the address right?` };
}

function advice({ credential }: IdentityProviderSettings): string {
  switch (credential?.kind) {
    case 'secret':
      return 'compare IDP_CLIENT_ID and IDP_CLIENT_SECRET, and register it for client_secret_basic';
    case 'key':
      return 'compare IDP_CLIENT_ID, the public key of IDP_CLIENT_KEY and IDP_URL, and register it for private_key_jwt';
    case undefined:
      return 'compare IDP_CLIENT_ID, and register it as a public client, or set IDP_CLIENT_SECRET or IDP_CLIENT_KEY';
  }
}
