/** What the studio's server tells its page, at `/config.json`. */

import type { IdentityProvider } from '../../client/sign-in.ts';

export interface StudioConfig {
  readonly gatewayUrl: string;
  readonly identityProvider: IdentityProvider;
}
