/** The settings of the identity provider. */

import type { EnvironmentReader } from './environment-reader.ts';
import { baseAddressProblem, normalized, redirectUriProblem } from './values.ts';

export const IDENTITY_PROVIDER_SETTING_NAMES = ['IDP_URL', 'IDP_CLIENT_ID', 'IDP_REDIRECT_URI'] as const;
type IdentityProviderSettingName = (typeof IDENTITY_PROVIDER_SETTING_NAMES)[number];

export interface IdentityProviderSettings {
  /** Base address, without a trailing slash. */
  readonly url: string;
  readonly clientId: string;
  readonly redirectUri: string;
}

export function parseIdentityProviderSettings(
  read: EnvironmentReader<IdentityProviderSettingName>,
): IdentityProviderSettings {
  return {
    url: normalized(read.checked('IDP_URL', baseAddressProblem)),
    clientId: read.required('IDP_CLIENT_ID'),
    redirectUri: read.checked('IDP_REDIRECT_URI', redirectUriProblem),
  };
}
