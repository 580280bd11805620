/** The rules for values of settings. A function named `...Problem` returns what is wrong with a value, or undefined. */

import { RedisClient } from 'bun';
import type { EnvironmentReader } from './environment-reader.ts';

export function baseAddressProblem(value: string): string | undefined {
  const url = URL.parse(value);
  // A value that is not a URL may contain credentials too.
  if (url ? url.username || url.password : value.includes('@')) return 'must not contain credentials';
  if (!url || !/^https?:$/.test(url.protocol)) return `must be an http or https address, not "${value}"`;
  if (/[?#]/.test(value)) return 'must not contain a query or a fragment';
  return undefined;
}

/** Normalizes an address as `new URL` does, without a trailing slash, so that URLs can be compared with it. */
export function normalized(address: string): string {
  return URL.parse(address)?.href.replace(/\/+$/, '') ?? address;
}

export function readOrigins(read: EnvironmentReader): ReadonlySet<string> {
  const { problems } = read;
  const origins = read.list('ALLOWED_ORIGINS');
  if (read.required('ALLOWED_ORIGINS') && !origins.length) {
    problems.push('ALLOWED_ORIGINS must name at least one origin');
  }
  const valid: URL[] = [];
  for (const origin of origins) {
    const url = URL.parse(origin);
    if (!url || !/^https?:$/.test(url.protocol) || url.host.includes('*')) {
      problems.push(`ALLOWED_ORIGINS: "${origin}" is not an origin like https://studio.example`);
    } else if (url.origin !== origin) {
      problems.push(`ALLOWED_ORIGINS: "${origin}" must be written as a browser sends it: ${url.origin}`);
    } else valid.push(url);
  }
  warnOfSites(read, valid);
  return new Set(origins);
}

const LOCAL = /^(?:.+\.)?localhost$|^127\.|^\[::1\]$/;

/** Whether only this machine can be reached by it. */
export function isLocal(hostname: string): boolean {
  return LOCAL.test(hostname);
}

function warnOfSites(read: EnvironmentReader, origins: readonly URL[]): void {
  const bySite = new Map(origins.toReversed().map((url) => [siteOf(url), url.origin]));
  if (bySite.size < 2) return;
  const pages = new Intl.ListFormat('en').format([...bySite.values()].toReversed());
  read.warnings.push(
    `ALLOWED_ORIGINS: ${pages} are on different sites: browsers send the cookies only from the gateway's own site`,
  );
}

/**
 * The site whose pages share SameSite cookies. It does not know the list of public suffixes, so it takes `a.co.uk` and
 * `b.co.uk` for one site; but it never takes one site for two.
 */
function siteOf({ protocol, hostname }: URL): string {
  // A gateway on this machine can have every local name, and so be on the site of each.
  if (isLocal(hostname)) return 'localhost';
  const isAddress = /^\[|^[\d.]+$/.test(hostname);
  return protocol + (isAddress ? hostname : hostname.split('.').slice(-2).join('.'));
}

/** The text never quotes the value, which may contain a password. */
export function redisUrlProblem(value: string): string | undefined {
  const problem =
    'must be an address like redis://127.0.0.1:6379, or redis+unix://:password@localhost/run/redis.sock for a socket';
  if (!/^(redis|valkey)(s|\+unix)?:$/.test(URL.parse(value)?.protocol ?? '')) return problem;
  try {
    // It connects only when it is used.
    new RedisClient(value);
    return undefined;
  } catch {
    return problem;
  }
}

export function shareProblem(value: string): string | undefined {
  const share = Number(value);
  return share >= 0 && share <= 1 ? undefined : `must be a number from 0 to 1, not "${value}"`;
}
