/** Turns the environment into typed settings, and names every problem in it at once. */

import { lookAlikeWarnings } from './settings/look-alikes.ts';
import { defaultStreamedBodies, memoryLimitBytes } from './settings/memory.ts';
import {
  baseAddressProblem,
  type LogLevel,
  logLevelOf,
  normalized,
  parseCookieKeys,
  parseOrigins,
  redirectUriProblem,
  redisUrlProblem,
} from './settings/values.ts';

export interface Settings {
  readonly port: number;
  readonly host: string;
  /** Upstream API base address, without a trailing slash; may have a path prefix. */
  readonly upstreamUrl: string;
  readonly identityProvider: {
    /** Base address, without a trailing slash. */
    readonly url: string;
    readonly clientId: string;
    readonly redirectUri: string;
  };
  readonly allowedOrigins: ReadonlySet<string>;
  readonly serviceName: string;
  /** Production mode: the cookies are Secure. */
  readonly production: boolean;
  readonly upstreamSignInField: string;
  readonly timeouts: {
    readonly signInMs: number;
    readonly readMs: number;
    readonly logoutMs: number;
    readonly streamMs: number;
  };
  /** How long a spent refresh token still yields its successor; 0: not at all. */
  readonly refreshReplaySeconds: number;
  /** Where instances share their refreshes; undefined for one that runs alone. */
  readonly redisUrl: string | undefined;
  /** 32 bytes each; the first seals the cookies, all open them; none: the cookies are not sealed. */
  readonly cookieKeys: readonly Uint8Array[];
  /** For the switch-over: cookies from before sealing was on still count. */
  readonly acceptPlainCookies: boolean;
  /** How many generate and proxy calls may be in flight at a time. */
  readonly maxInFlightRequests: number;
  /** How many calls of one session may be in flight at a time; 0: no limit of its own. */
  readonly maxInFlightPerSession: number;
  /** How many response bodies may be streamed at a time. */
  readonly maxStreamedBodies: number;
  /** What the process may use. */
  readonly memoryLimitBytes: number;
  /** Where Prometheus finds the metrics; undefined: nowhere. */
  readonly metricsPort: number | undefined;
  readonly logLevel: LogLevel;
}

export type Environment = Readonly<Record<string, string | undefined>>;

export type SettingsOutcome =
  | { readonly ok: true; readonly settings: Settings; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly problems: readonly string[]; readonly warnings: readonly string[] };

export const SETTING_NAMES = [
  'PORT',
  'HOST',
  'UPSTREAM_URL',
  'IDP_URL',
  'IDP_CLIENT_ID',
  'IDP_REDIRECT_URI',
  'ALLOWED_ORIGINS',
  'SERVICE_NAME',
  'NODE_ENV',
  'UPSTREAM_SIGN_IN_FIELD',
  'TIMEOUT_SIGN_IN_MS',
  'TIMEOUT_READ_MS',
  'TIMEOUT_LOGOUT_MS',
  'TIMEOUT_STREAM_MS',
  'REFRESH_REPLAY_SECONDS',
  'REDIS_URL',
  'COOKIE_KEYS',
  'COOKIE_KEYS_ACCEPT_PLAIN',
  'MAX_IN_FLIGHT_REQUESTS',
  'MAX_IN_FLIGHT_PER_SESSION',
  'MAX_STREAMED_BODIES',
  'METRICS_PORT',
  'LOG_LEVEL',
] as const;
type Name = (typeof SETTING_NAMES)[number];

/** Settings of earlier versions: to go on without them would be to go on without what they were set for. */
const RENAMED: Readonly<Record<string, Name>> = { MAX_HELD_REQUESTS: 'MAX_IN_FLIGHT_REQUESTS' };

/** Fetches at a time that Bun can be told to allow, less those of the other pools. */
const MOST_IN_FLIGHT_REQUESTS = 60_000;
/** Terabytes. */
const MOST_STREAMED_BODIES = 1_000_000;

/** The longest delay that a timer takes; a larger one would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Reads the settings; an empty value counts as not set.
 *
 * @param memoryBytes what the process may use
 * @returns the settings, or every problem, each naming its setting and what is wrong with it
 */
export function parseSettings(environment: Environment, memoryBytes = memoryLimitBytes()): SettingsOutcome {
  const problems = Object.entries(RENAMED).flatMap(([name, successor]) =>
    !environment[name]?.trim() ? [] : [`${name} is now called ${successor}`],
  );
  const warnings = lookAlikeWarnings(environment, SETTING_NAMES);

  const text = (name: Name, fallback: string) => environment[name]?.trim() || fallback;
  const required = (name: Name): string => {
    const value = text(name, '');
    if (!value) problems.push(`${name} is required and not set`);
    return value;
  };
  const integer = (name: Name, fallback: number, least: number, most: number): number => {
    const value = text(name, String(fallback));
    const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
    if (number >= least && number <= most) return number;
    problems.push(`${name} must be a whole number from ${least} to ${most}, not "${value}"`);
    return fallback;
  };
  const flag = (name: Name): boolean => {
    const value = text(name, 'false');
    if (value !== 'true' && value !== 'false') problems.push(`${name} must be true or false, not "${value}"`);
    return value === 'true';
  };
  const timeoutMs = (name: Name, fallback: number) => integer(name, fallback, 1, LONGEST_TIMER_MS);
  const checked = (name: Name, problemWith: (value: string) => string | undefined): string => {
    required(name);
    return optional(name, problemWith) ?? '';
  };
  const optional = (name: Name, problemWith: (value: string) => string | undefined): string | undefined => {
    const value = text(name, '');
    const problem = value && problemWith(value);
    if (problem) problems.push(`${name} ${problem}`);
    return value || undefined;
  };

  const production = text('NODE_ENV', '') === 'production';
  const maxInFlightRequests = integer('MAX_IN_FLIGHT_REQUESTS', 4000, 1, MOST_IN_FLIGHT_REQUESTS);
  const settings: Settings = {
    port: integer('PORT', 4175, 0, 65535),
    host: text('HOST', '0.0.0.0'),
    upstreamUrl: normalized(checked('UPSTREAM_URL', baseAddressProblem)),
    identityProvider: {
      url: normalized(checked('IDP_URL', baseAddressProblem)),
      clientId: required('IDP_CLIENT_ID'),
      redirectUri: checked('IDP_REDIRECT_URI', redirectUriProblem),
    },
    allowedOrigins: parseOrigins(required('ALLOWED_ORIGINS'), problems),
    serviceName: text('SERVICE_NAME', 'music-gateway'),
    production,
    upstreamSignInField: text('UPSTREAM_SIGN_IN_FIELD', 'access_token'),
    timeouts: {
      signInMs: timeoutMs('TIMEOUT_SIGN_IN_MS', 20_000),
      readMs: timeoutMs('TIMEOUT_READ_MS', 15_000),
      logoutMs: timeoutMs('TIMEOUT_LOGOUT_MS', 10_000),
      streamMs: timeoutMs('TIMEOUT_STREAM_MS', 280_000),
    },
    refreshReplaySeconds: integer('REFRESH_REPLAY_SECONDS', 60, 0, 3600),
    redisUrl: optional('REDIS_URL', redisUrlProblem),
    cookieKeys: parseCookieKeys(text('COOKIE_KEYS', ''), problems),
    acceptPlainCookies: flag('COOKIE_KEYS_ACCEPT_PLAIN'),
    maxInFlightRequests,
    maxInFlightPerSession: integer('MAX_IN_FLIGHT_PER_SESSION', 100, 0, MOST_IN_FLIGHT_REQUESTS),
    maxStreamedBodies: integer(
      'MAX_STREAMED_BODIES',
      defaultStreamedBodies(maxInFlightRequests, memoryBytes),
      1,
      MOST_STREAMED_BODIES,
    ),
    memoryLimitBytes: memoryBytes,
    metricsPort: text('METRICS_PORT', '') ? integer('METRICS_PORT', 0, 0, 65535) : undefined,
    logLevel: logLevelOf(text('LOG_LEVEL', 'info'), problems),
  };
  if (settings.metricsPort && settings.metricsPort === settings.port) {
    problems.push(`METRICS_PORT must not be PORT (${settings.port}), which is for the public`);
  }
  if (!production && [...settings.allowedOrigins].some((origin) => origin.startsWith('https:'))) {
    warnings.push(
      'NODE_ENV is not production: the cookies are not Secure, although an allowed origin is https',
    );
  }
  return problems.length ? { ok: false, problems, warnings } : { ok: true, settings, warnings };
}
