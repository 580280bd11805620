/** Starts the sandbox's upstream API: sign-in, models, generation, library and billing. */

import { accountRoutes } from './account-routes.ts';
import { ApiError, errorResponse } from './api-error.ts';
import { Library } from './library.ts';
import { musicRoutes } from './music-routes.ts';
import { createSessions, type SessionCounts } from './session-routes.ts';
import { TokenFamilies } from './token-families.ts';

export interface UpstreamOptions {
  /** 0: any free port. */
  port: number;
  hostname: string;
  identityProviderUrl: string;
  /** How long an access token lives; 60 unless given. */
  accessTokenSeconds?: number;
  /** How many times faster than it plays a track is generated; 10 unless given. */
  pace?: number;
  /** Credits of a new account; 5,000 unless given. */
  startingBalance?: number;
  /** Milliseconds since the epoch; the system's clock unless given. */
  now?: () => number;
}

export interface Upstream {
  /** Without a trailing slash. */
  url: string;
  /** What has happened since the start. */
  counts(): UpstreamCounts;
  /** Lets every access token run out now; refresh tokens stay good. */
  expireAccessTokens(): void;
  stop(): Promise<void>;
}

export interface UpstreamCounts extends SessionCounts {
  /** Creations accepted; the replays of an Idempotency-Key do not count. */
  generations: number;
}

/** A taken port rejects with the EADDRINUSE error. */
export async function startUpstream(options: UpstreamOptions): Promise<Upstream> {
  const { port, hostname, identityProviderUrl } = options;
  const { accessTokenSeconds = 60, pace = 10, startingBalance = 5_000, now = Date.now } = options;
  const families = new TokenFamilies({ accessTokenSeconds, now });
  const sessions = createSessions({ identityProviderUrl, families, startingBalance, now });
  const library = new Library({ pace, now });

  const server = Bun.serve({
    port,
    hostname,
    development: false,
    // Its default is true once `development` is false: two sandboxes would share a port in silence.
    reusePort: false,
    // A slow pace leaves long gaps between two pieces of a track.
    idleTimeout: 255,
    routes: {
      ...sessions.routes,
      ...accountRoutes(sessions.requireAccount, now),
      ...musicRoutes(library, sessions.requireAccount),
    },
    fetch: () => errorResponse(new ApiError(404, 'There is no such path')),
    error: errorResponse,
  });

  return {
    url: `http://${hostname}:${server.port}`,
    counts: () => ({ ...sessions.counts, generations: library.accepted }),
    expireAccessTokens: () => families.expireAccessTokens(),
    stop: () => server.stop(true),
  };
}
