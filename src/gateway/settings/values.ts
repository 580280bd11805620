/** The rules for values of settings. A function named `...Problem` returns what is wrong with a value, or undefined. */

import { RedisClient } from 'bun';
import type { EnvironmentReader } from './environment-reader.ts';

export function baseAddressProblem(value: string): string | undefined {
  const url = URL.parse(value);
  // A value that is not a URL may contain credentials too.
  if (url ? url.username || url.password : value.includes('@'))
    return 'must not hold a user name or a password';
  if (!url || !/^https?:$/.test(url.protocol)) return `must be an http or https address, not "${value}"`;
  if (/[?#]/.test(value)) return 'must not hold a query or a fragment';
  return undefined;
}

/** @see RFC 6749 section 3.2: a query is allowed, a fragment is not. */
export function tokenUrlProblem(value: string): string | undefined {
  if (value.includes('#')) return 'must not hold a fragment';
  return baseAddressProblem(value.split('?', 1)[0] ?? '');
}

/** The text never quotes the value, which may contain a password. */
export function redisUrlProblem(value: string): string | undefined {
  const isRedis = /^(redis|valkey)(s|\+unix)?:$/.test(URL.parse(value)?.protocol ?? '');
  return isRedis && isForClient(value)
    ? undefined
    : 'must be an address like redis://127.0.0.1:6379, or redis+unix://:password@localhost/run/redis.sock for a socket';
}

function isForClient(value: string): boolean {
  try {
    // It connects only when it is used.
    new RedisClient(value);
    return true;
  } catch {
    return false;
  }
}

export function shareProblem(value: string): string | undefined {
  const share = Number(value);
  return share >= 0 && share <= 1 ? undefined : `must be a number from 0 to 1, not "${value}"`;
}

/** Normalises an address as `new URL` does, without a trailing slash, so that URLs can be compared with it. */
export function normalized(address: string): string {
  return URL.parse(address)?.href.replace(/\/+$/, '') ?? address;
}

/** @see RFC 6749 section 3.1.2: an absolute URI without a fragment. */
export function redirectUriProblem(value: string): string | undefined {
  if (!URL.canParse(value)) return `must be an absolute URI, not "${value}"`;
  return value.includes('#') ? 'must not hold a fragment' : undefined;
}

export function entriesOf(list: string): string[] {
  return list
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean);
}

export function readOrigins(read: EnvironmentReader): ReadonlySet<string> {
  const { problems } = read;
  const list = read.required('ALLOWED_ORIGINS');
  const origins = entriesOf(list);
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

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
