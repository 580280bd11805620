/** Parses the environment into typed settings, and reports every problem at once. */

import { readCookieSettings } from './cookie-settings.ts';
import { environmentFileWarnings } from './environment-files.ts';
import { type Environment, EnvironmentReader } from './environment-reader.ts';
import { readIdentityProviderSettings } from './identity-provider-settings.ts';
import { memoryLimitBytes } from './memory.ts';
import { misspelledNames } from './misspelled-names.ts';
import { limitWarnings, openFilesLimit } from './process-limits.ts';
import { readTrustedProxies } from './trusted-proxies.ts';
import { baseAddressProblem, normalized, readOrigins, redisUrlProblem, shareProblem } from './values.ts';

export type Settings = ReturnType<typeof readSettings>;

type SettingsOutcome =
  | { readonly ok: true; readonly settings: Settings; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly problems: readonly string[]; readonly warnings: readonly string[] };

/** Bun can make at most 65,535 fetches at a time, of which the other pools need some. */
const IN_FLIGHT_REQUESTS_BOUND = 60_000;
/** The longest delay that a timer accepts; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** A shorter time-out is probably given in seconds. */
const SHORT_TIMER_MS = 1000;
/** A slice is in memory as a whole. */
const SLICE_BYTES_BOUND = 8 * 1024 * 1024;

/**
 * Reads the settings of this process. Also imports the client's key, so that a gateway with a wrong one does not start.
 *
 * @returns the settings, or every problem, each naming its setting and what is wrong with it
 */
export async function loadSettings(environment: Environment): Promise<SettingsOutcome> {
  const read = new EnvironmentReader(environment);
  const settings = readSettings(read);
  const { credential } = settings.identityProvider;
  if (credential?.kind === 'key') {
    await credential.key.imported().catch(({ message }: TypeError) => read.problems.push(message));
  }
  const outcome = outcomeOf(settings, read);
  if (outcome.ok) {
    const files = environmentFileWarnings(settings.production, process.cwd());
    read.warnings.push(...limitWarnings(settings, environment, openFilesLimit()), ...files);
  }
  return outcome;
}

/** Like {@link loadSettings}, but does not import the client's key, and looks at nothing but the environment. */
export function parseSettings(environment: Environment): SettingsOutcome {
  const read = new EnvironmentReader(environment);
  return outcomeOf(readSettings(read), read);
}

/** The name of every setting, in alphabetical order. */
export function settingNames(): string[] {
  const read = new EnvironmentReader({});
  readSettings(read);
  return [...read.names].toSorted();
}

/** Each line has the name, the rule and the default of a setting. */
function readSettings(read: EnvironmentReader) {
  const production =
    read.oneOf('NODE_ENV', ['production', 'development', 'test'], 'development') === 'production';
  const allowedOrigins = readOrigins(read);
  return {
    port: read.integer('PORT', 4175, 0, 65535),
    host: read.text('HOST', '0.0.0.0'),
    /** Upstream API base address, without a trailing slash; may have a path prefix. */
    upstreamUrl: normalized(read.checked('UPSTREAM_URL', baseAddressProblem)),
    identityProvider: readIdentityProviderSettings(read, allowedOrigins),
    allowedOrigins,
    /** Whether a page on the gateway's own origin may use it, whose GETs have no `Origin`. */
    sameOrigin: read.flag('SAME_ORIGIN'),
    serviceName: read.text('SERVICE_NAME', 'music-gateway'),
    /** Production mode: the cookies are Secure, and the OpenAPI document is not served. */
    production,
    upstreamSignInField: read.text('UPSTREAM_SIGN_IN_FIELD', 'access_token'),
    timeouts: {
      signInMs: readTimeout(read, 'TIMEOUT_SIGN_IN_MS', 20_000),
      readMs: readTimeout(read, 'TIMEOUT_READ_MS', 15_000),
      logoutMs: readTimeout(read, 'TIMEOUT_LOGOUT_MS', 10_000),
      streamMs: readTimeout(read, 'TIMEOUT_STREAM_MS', 280_000),
    },
    /** How long a spent refresh token still yields its successor; 0 disables replay. */
    refreshReplaySeconds: read.integer('REFRESH_REPLAY_SECONDS', 60, 0, 3600),
    /** The effect of a 429 or 5xx in response to a refresh: `sign-out` ends the session, `keep` leaves it unchanged. */
    refreshOutage: read.oneOf('REFRESH_OUTAGE', ['sign-out', 'keep'], 'sign-out'),
    /** The Redis in which instances share their refreshes; undefined for a single instance. */
    redisUrl: read.optional('REDIS_URL', redisUrlProblem, read.secret('REDIS_URL')),
    /** Whether sign-out refreshes once when the access token is missing or has expired, to sign out at the upstream. */
    signOutRevokes: read.flag('SIGN_OUT_REVOKES'),
    cookies: readCookieSettings(read, production),
    /** How many generate and proxy calls may be in flight at a time. */
    maxInFlightRequests: read.integer('MAX_IN_FLIGHT_REQUESTS', 4000, 1, IN_FLIGHT_REQUESTS_BOUND),
    /** How many calls of one session may be in flight at a time; 0 means no limit per session. */
    maxInFlightPerSession: read.integer('MAX_IN_FLIGHT_PER_SESSION', 100, 0, IN_FLIGHT_REQUESTS_BOUND),
    /** How many generations of one session may be in flight at a time; 0 means no limit per session. */
    maxGenerationsPerSession: read.integer('MAX_GENERATIONS_PER_SESSION', 10, 0, IN_FLIGHT_REQUESTS_BOUND),
    /** How much of a long range the upstream is asked for at a time; 0: all at once. */
    relaySliceBytes: read.integer('RELAY_SLICE_BYTES', 256 * 1024, 0, SLICE_BYTES_BOUND),
    /** The longest proxied request body that is neither JSON nor URL-encoded; 0: as long as those. */
    maxUploadBytes: read.integer('MAX_UPLOAD_BYTES', 200 * 1024 * 1024, 0, Number.MAX_SAFE_INTEGER),
    /** The memory that the process may use. */
    memoryLimitBytes: memoryLimitBytes(),
    /** Whether the upstream gets the addresses of clients. */
    forwardClientAddress: read.flag('FORWARD_CLIENT_ADDRESS'),
    /** Which proxies may name a client's address and the host that it has asked for. */
    isTrustedProxy: readTrustedProxies(read),
    /** The port of the metrics; undefined disables them. */
    metricsPort: read.text('METRICS_PORT') ? read.integer('METRICS_PORT', 0, 0, 65535) : undefined,
    metricsHost: read.text('METRICS_HOST', '127.0.0.1'),
    /** The share of the traces that is exported, from 0 to 1; undefined when there is no address for them. */
    traceShare: readTraceShare(read),
    /** Whether the log names sessions, each by a keyed hash of its refresh token. */
    logSession: read.flag('LOG_SESSION'),
    logLevel: read.oneOf('LOG_LEVEL', ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], 'info'),
  } as const;
}

function readTimeout(read: EnvironmentReader, name: string, fallbackMs: number): number {
  const timeoutMs = read.integer(name, fallbackMs, 1, MAX_TIMER_MS);
  if (timeoutMs < SHORT_TIMER_MS) {
    read.warnings.push(`${name} is ${timeoutMs} milliseconds, less than a second: are seconds meant?`);
  }
  return timeoutMs;
}

/** The exporter reads the address, and the other variables of OpenTelemetry, by itself. */
function readTraceShare(read: EnvironmentReader): number | undefined {
  const address = read.optional('OTEL_EXPORTER_OTLP_ENDPOINT', baseAddressProblem);
  const share = Number(read.optional('OTEL_TRACES_SAMPLER_ARG', shareProblem) ?? 1);
  return address === undefined ? undefined : share;
}

/** Adds what is wrong with several settings together. */
function outcomeOf(settings: Settings, read: EnvironmentReader): SettingsOutcome {
  const { problems, warnings } = read;
  if (settings.metricsPort && settings.metricsPort === settings.port) {
    problems.push(`METRICS_PORT must not be PORT (${settings.port}), which is public`);
  }
  if (settings.metricsPort !== undefined && /^(?:0\.0\.0\.0|::)$/.test(settings.metricsHost)) {
    const { metricsHost } = settings;
    warnings.push(
      `METRICS_HOST is ${metricsHost}: everyone who can reach METRICS_PORT there can read the metrics`,
    );
  }
  if (read.text('TRUSTED_PROXIES') && !settings.forwardClientAddress && !settings.sameOrigin) {
    warnings.push('TRUSTED_PROXIES has no effect without FORWARD_CLIENT_ADDRESS=true or SAME_ORIGIN=true');
  }
  const isHttps = [...settings.allowedOrigins].some((origin) => origin.startsWith('https:'));
  if (isHttps && !settings.cookies.secure) {
    warnings.push(
      'NODE_ENV is not production: the cookies are not Secure, although an allowed origin is https; ' +
        'COOKIE_SECURE=true makes them Secure',
    );
  }
  if (read.environment['NODE_TLS_REJECT_UNAUTHORIZED'] === '0') {
    const found = 'NODE_TLS_REJECT_UNAUTHORIZED is 0: certificates of other servers are not checked';
    if (settings.production) problems.push(`${found}, which production does not allow`);
    else warnings.push(found);
  }
  if (read.isIncomplete) problems.push('deploy/settings.md says what each setting is');
  warnings.push(...misspelledNames(read.environment, read.names));
  return problems.length ? { ok: false, problems, warnings } : { ok: true, settings, warnings };
}
