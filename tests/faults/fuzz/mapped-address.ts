/** What an address of the upstream's must have become when it reaches the client. */

import { isTokenEndpoint, pathOf } from './paths.ts';
import { BASE_PATH } from './upstream-answers.ts';

/** The value that must be there; whether it may be missing instead. Without a value it must be missing. */
export interface Expected {
  readonly value?: string;
  readonly mayBeMissing: boolean;
}

/**
 * @param callTarget what the address is relative to
 * @returns undefined for what is no address
 */
export function expectedAddress(written: string, host: string, callTarget: string): Expected | undefined {
  const url = URL.parse(written, `http://${host}${callTarget}`);
  if (!url) return undefined;
  if (url.host !== host) return { value: written, mayBeMissing: false };
  if (!url.pathname.startsWith(`${BASE_PATH}/v1/`)) return { mayBeMissing: true };
  const path = url.pathname.slice(BASE_PATH.length);
  const isPlain = url.protocol === 'http:' && url.username === '' && url.password === '';
  const isReachable = !/\/;|%2e|%2f|%5c/i.test(path) && !isTokenEndpoint(pathOf(path));
  return { value: `/api/upstream${path}${url.search}${url.hash}`, mayBeMissing: !isPlain || !isReachable };
}
