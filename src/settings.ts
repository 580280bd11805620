/** Turns the environment into typed settings, and names every problem in it at once. */

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
}

export type Environment = Readonly<Record<string, string | undefined>>;

export type SettingsOutcome =
  | { readonly ok: true; readonly settings: Settings; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly problems: readonly string[]; readonly warnings: readonly string[] };

const NAMES = [
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
] as const;
type Name = (typeof NAMES)[number];

/** The longest delay that a timer takes; a larger one would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Reads the settings; an empty value counts as not set.
 *
 * @returns the settings, or every problem, each naming its setting and what is wrong with it
 */
export function parseSettings(environment: Environment): SettingsOutcome {
  const problems: string[] = [];
  const warnings = resemblances(environment);

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
  const timeoutMs = (name: Name, fallback: number) => integer(name, fallback, 1, LONGEST_TIMER_MS);
  const checked = (name: Name, problemWith: (value: string) => string | undefined): string => {
    const value = required(name);
    const problem = value && problemWith(value);
    if (problem) problems.push(`${name} ${problem}`);
    return value;
  };

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
    production: text('NODE_ENV', '') === 'production',
    upstreamSignInField: text('UPSTREAM_SIGN_IN_FIELD', 'access_token'),
    timeouts: {
      signInMs: timeoutMs('TIMEOUT_SIGN_IN_MS', 20_000),
      readMs: timeoutMs('TIMEOUT_READ_MS', 15_000),
      logoutMs: timeoutMs('TIMEOUT_LOGOUT_MS', 10_000),
      streamMs: timeoutMs('TIMEOUT_STREAM_MS', 280_000),
    },
    refreshReplaySeconds: integer('REFRESH_REPLAY_SECONDS', 60, 0, 3600),
  };
  return problems.length ? { ok: false, problems, warnings } : { ok: true, settings, warnings };
}

function baseAddressProblem(value: string): string | undefined {
  const url = URL.parse(value);
  if (url?.username || url?.password) return 'must not hold a user name or a password';
  if (!url || !/^https?:$/.test(url.protocol)) return `must be an http or https address, not "${value}"`;
  if (url.search || url.hash || /[?#]/.test(value)) return 'must not hold a query or a fragment';
  return undefined;
}

/** As `new URL` writes it, so that addresses built from it can be compared with it; without a trailing slash. */
function normalized(address: string): string {
  return URL.parse(address)?.href.replace(/\/+$/, '') ?? address;
}

/** @see RFC 6749 section 3.1.2: an absolute URI without a fragment. */
function redirectUriProblem(value: string): string | undefined {
  if (!URL.canParse(value)) return `must be an absolute URI, not "${value}"`;
  return value.includes('#') ? 'must not hold a fragment' : undefined;
}

function parseOrigins(list: string, problems: string[]): ReadonlySet<string> {
  const origins = list
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean);
  if (list && !origins.length) problems.push('ALLOWED_ORIGINS must name at least one origin');
  for (const origin of origins) {
    const url = URL.parse(origin);
    if (!url || !/^https?:$/.test(url.protocol) || url.host.includes('*')) {
      problems.push(`ALLOWED_ORIGINS: "${origin}" is not an origin like https://studio.example`);
    } else if (url.origin !== origin) {
      problems.push(`ALLOWED_ORIGINS: "${origin}" must be written as a browser sends it: ${url.origin}`);
    }
  }
  return new Set(origins);
}

function resemblances(environment: Environment): string[] {
  const known: readonly string[] = NAMES;
  return Object.keys(environment)
    .filter((name) => environment[name] !== undefined && !known.includes(name))
    .flatMap((name) => {
      const meant = known.find((candidate) => resembles(name.toUpperCase(), candidate));
      return meant ? [`${name} is not a setting of the gateway; did you mean ${meant}?`] : [];
    });
}

/** One slip of the keyboard for every five letters, so that HOME is not taken for HOST. */
function resembles(name: string, known: string): boolean {
  const allowed = Math.floor(known.length / 5);
  return Math.abs(name.length - known.length) <= allowed && editDistance(name, known) <= allowed;
}

/** Levenshtein distance, row by row. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next[j] = Math.min(substitution, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1);
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
