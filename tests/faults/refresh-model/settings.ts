/** The settings of every schedule; shorter than the defaults where that saves steps. */

import { testSettings } from '../../support/world.ts';

export const settings = testSettings({
  UPSTREAM_URL: 'http://upstream.test',
  IDP_URL: 'http://identity-provider.test',
  REFRESH_REPLAY_SECONDS: '60',
  TIMEOUT_SIGN_IN_MS: '5000',
  TIMEOUT_LOGOUT_MS: '2000',
});
