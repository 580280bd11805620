/** What the upstream's addresses must have become when they reach the client. */

import { isTokenEndpoint, pathOf } from './parsed-request.ts';
import { BASE_PATH } from './upstream-responses.ts';

/** The value that must be there; whether it may be missing instead. Without a value it must be missing. */
export interface Expected {
  readonly value?: string;
  readonly mayBeMissing: boolean;
}

export interface Link {
  readonly target: string;
  /** All that follows the target, as it was written. */
  readonly parameters: string;
}

const LINK = /^<([^<>]*)>((?:[ \t]*;[^",;]*(?:"(?:[^"\\]|\\.)*"[ \t]*)?(?=[;,]|$))*[ \t]*)(?=,|$)/;

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

/** Splits a `Link` value; undefined when it is no list of links. @see RFC 8288 section 3 */
export function parseLinks(value: string): Link[] | undefined {
  const links: Link[] = [];
  for (let rest = value; ; ) {
    rest = rest.replace(/^[ \t,]+/, '');
    if (rest === '') return links;
    const [whole, target, parameters] = LINK.exec(rest) ?? [];
    if (whole === undefined || target === undefined || parameters === undefined) return undefined;
    links.push({ target, parameters: parameters.trim() });
    rest = rest.slice(whole.length);
  }
}
