/** The configuration that the Studio's page fetches from `/config.json`. */

import type { IdentityProvider } from '../../client/sign-in.ts';

export interface StudioConfig {
  readonly gatewayUrl: string;
  readonly identityProvider: IdentityProvider;
  /** The ids of public tracks that can be heard before a sign-in. */
  readonly pieces: readonly string[];
}
