/** The configuration that the Studio's page fetches from `/config.json`. */

import type { IdentityProvider } from '../../client/sign-in.ts';

export interface StudioConfig {
  readonly gatewayUrl: string;
  readonly identityProvider: IdentityProvider;
}
