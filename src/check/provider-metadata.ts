/** Compares the settings of the identity provider with what it publishes about itself. */

import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { IdentityProviderSettings } from '../gateway/settings/identity-provider-settings.ts';
import { normalized } from '../gateway/settings/values.ts';
import { isSuccess, jsonOf } from '../gateway/upstream/upstream-response.ts';
import type { Finding } from './finding.ts';
import { type Probed, probe } from './http-probe.ts';

/** @see RFC 8414 section 2 */
const Metadata = Type.Object({
  issuer: Type.String(),
  token_endpoint: Type.String(),
  code_challenge_methods_supported: Type.Optional(Type.Array(Type.String())),
  token_endpoint_auth_methods_supported: Type.Optional(Type.Array(Type.String())),
});

const METHODS = { secret: 'client_secret_basic', key: 'private_key_jwt' };

/** @see RFC 8414 section 3.1, OpenID Connect Discovery 1.0 section 4 */
export function probeMetadata(issuer: string): Promise<Probed[]> {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  const addresses = [
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ];
  return Promise.all(addresses.map((address) => probe('token', address)));
}

/** Whether each of two servers is where the settings name the other one. */
export function isSwapped(ofProvider: readonly Probed[], ofUpstream: readonly Probed[]): boolean {
  return ofUpstream.some(metadataOf) && !ofProvider.some(metadataOf);
}

/** None when the provider publishes nothing. */
export function metadataFindings(provider: IdentityProviderSettings, probed: readonly Probed[]): Finding[] {
  const metadata = probed.map(metadataOf).find((each) => each !== undefined);
  if (!metadata) return [];
  const differences = differencesFrom(metadata, provider);
  if (!differences.length) {
    return [{ level: 'ok', text: 'IDP_URL: the metadata of the identity provider agrees with the settings' }];
  }
  return differences.map((text) => ({ level: 'warning', text }));
}

function metadataOf(probed: Probed): Static<typeof Metadata> | undefined {
  if ('problem' in probed || !isSuccess(probed.response)) return undefined;
  const body = jsonOf(probed.response);
  return Value.Check(Metadata, body) ? body : undefined;
}

function differencesFrom(metadata: Static<typeof Metadata>, provider: IdentityProviderSettings): string[] {
  const { issuer, tokenUrl, credential } = provider;
  const differences: string[] = [];
  if (normalized(metadata.token_endpoint) !== normalized(tokenUrl)) {
    const endpoint = quoted(metadata.token_endpoint);
    differences.push(
      `IDP_TOKEN_URL: the identity provider names the token endpoint ${endpoint}; set it to that`,
    );
  }
  // Only the audience of an assertion depends on how the issuer is written.
  if (credential?.kind === 'key' && metadata.issuer !== issuer) {
    differences.push(
      `IDP_URL: the identity provider calls itself ${quoted(metadata.issuer)}; write it exactly like that`,
    );
  }
  const challenges = metadata.code_challenge_methods_supported;
  if (challenges && !challenges.includes('S256')) {
    differences.push('IDP_URL: the identity provider does not offer PKCE with S256, which web apps need');
  }
  // Many providers have public clients without listing "none".
  const methods = metadata.token_endpoint_auth_methods_supported;
  if (credential && methods && !methods.includes(METHODS[credential.kind])) {
    differences.push(
      `IDP_CLIENT_${credential.kind.toUpperCase()}: the identity provider does not offer ` +
        `${METHODS[credential.kind]}, by which the gateway authenticates`,
    );
  }
  return differences;
}

/** As the provider writes it, without its query. Text that could control a terminal is not shown. */
function quoted(address: string): string {
  return /^[\x21-\x7e]{1,200}$/.test(address)
    ? address.replace(/\?.*/, '')
    : 'something that is not an address';
}
