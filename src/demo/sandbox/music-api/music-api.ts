/** Starts the sandbox's upstream API: sign-in, models, generation, library and billing. */

import { accountRoutes } from './account-routes.ts';
import { ApiError, errorResponse } from './api-error.ts';
import { Library } from './library.ts';
import { musicRoutes } from './music-routes.ts';
import { referenceRoutes } from './reference-routes.ts';
import { References } from './references.ts';
import { createSessions, type SessionCounts } from './session-routes.ts';
import { TokenFamilies } from './token-families.ts';

export interface UpstreamOptions {
  /** 0 picks any free port. */
  port: number;
  hostname: string;
  identityProviderUrl: string;
  /** The lifetime of an access token. By default, 60. */
  accessTokenSeconds?: number;
  /** The speed of a generation as a multiple of playback speed. By default, 10. */
  pace?: number;
  /** The credits of a new account. By default, 5,000. */
  startingBalance?: number;
  /** Milliseconds since the epoch. By default, the system's clock. */
  now?: () => number;
}

export interface Upstream {
  /** Without a trailing slash. */
  url: string;
  /** The counts since the start. */
  counts(): UpstreamCounts;
  /** Makes every access token expire now; refresh tokens stay valid. */
  expireAccessTokens(): void;
  /** Goes away and comes back after so many milliseconds, with all its data. Only short calls are finished first. */
  restart(awayMs: number): Promise<void>;
  stop(): Promise<void>;
}

export interface UpstreamCounts extends SessionCounts {
  /** The number of creations. A repeated Idempotency-Key does not count. */
  generations: number;
}

/** How long a restart waits for the calls in flight. */
const GRACE_MS = 500;

/** Rejects with the EADDRINUSE error if the port is taken. */
export async function startUpstream(options: UpstreamOptions): Promise<Upstream> {
  const { port, hostname, identityProviderUrl } = options;
  const { accessTokenSeconds = 60, pace = 10, startingBalance = 5_000, now = Date.now } = options;
  const families = new TokenFamilies({ accessTokenSeconds, now });
  const sessions = createSessions({ identityProviderUrl, families, startingBalance, now });
  const library = new Library({ pace, now });
  const references = new References(now);

  const serve = (onPort: number) =>
    Bun.serve({
      port: onPort,
      hostname,
      development: false,
      // With `development: false`, Bun reuses ports by default: two sandboxes would silently share one.
      reusePort: false,
      // With a slow pace, the gaps between the chunks of a track are long.
      idleTimeout: 255,
      routes: {
        ...sessions.routes,
        ...accountRoutes(sessions.requireAccount, now),
        ...musicRoutes(library, references, sessions.requireAccount),
        ...referenceRoutes(references, sessions.requireAccount),
      },
      fetch: () => errorResponse(new ApiError(404, 'There is no such path')),
      error: errorResponse,
    });
  let server = serve(port);
  const boundPort = server.port ?? port;

  return {
    url: `http://${hostname}:${boundPort}`,
    counts: () => ({ ...sessions.counts, generations: library.accepted }),
    expireAccessTokens: () => families.expireAccessTokens(),
    async restart(awayMs) {
      await Promise.race([server.stop(), Bun.sleep(GRACE_MS)]);
      await server.stop(true);
      await Bun.sleep(awayMs);
      server = serve(boundPort);
    },
    stop: () => server.stop(true),
  };
}
