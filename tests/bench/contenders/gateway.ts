/** This gateway, as `bun run start` starts it. */

import { type Contender, script } from '../contender.ts';
import { ORIGIN, upstreamUrl } from '../mapping.ts';

export const gateway: Contender = {
  id: 'gateway',
  title: 'this gateway',
  needs: [],
  parts: ['bun', 'elysia'],
  launch: ({ port, upstreamPort }) => ({
    command: [process.execPath, script('../../src/index.ts')],
    env: {
      NODE_ENV: 'production',
      BUN_CONFIG_MAX_HTTP_REQUESTS: '20000',
      HOST: '127.0.0.1',
      PORT: `${port}`,
      UPSTREAM_URL: upstreamUrl(upstreamPort),
      IDP_URL: upstreamUrl(upstreamPort),
      IDP_CLIENT_ID: 'studio',
      IDP_REDIRECT_URI: `${ORIGIN}/callback`,
      ALLOWED_ORIGINS: ORIGIN,
      // All connections are one user's here.
      MAX_IN_FLIGHT_PER_SESSION: '60000',
    },
  }),
};
