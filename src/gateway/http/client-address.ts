/** Finds the address of a request's client, for the upstream. */

import type { Server } from 'bun';
import { canonicalAddress, type IsTrustedProxy } from '../settings/trusted-proxies.ts';

/** An IPv6 address in brackets, or an IPv4 address, either of them perhaps with a port. */
const BRACKETS_OR_PORT = /^(?:\[([^\]]*)\]|([\d.]+))(?::\d{1,5})?$/;

/**
 * Returns the headers that name the client to the upstream. They have its address alone: a client could have written
 * the rest of a chain. Must be called when the request arrives, because a closed connection has no address.
 *
 * @returns undefined when the address is unknown: without a server, or when the connection is closed
 * @see RFC 7239 sections 4, 5.2 and 6
 */
export function clientAddressHeaders(
  request: Request,
  server: Pick<Server<unknown>, 'requestIP'> | null,
  isTrusted: IsTrustedProxy,
): Readonly<Record<string, string>> | undefined {
  const peer = server?.requestIP(request)?.address;
  const address = peer && clientAddress(peer, request.headers.get('x-forwarded-for'), isTrusted);
  if (!address) return undefined;
  const node = address.includes(':') ? `"[${address}]"` : address;
  return { forwarded: `for=${node}`, 'x-forwarded-for': address };
}

/**
 * Follows the chain of proxies back from the peer: each trusted one has appended the address of its client. The first
 * address that is not trusted is the client's, because it could have made up the entries before. An entry that is not an
 * address ends the chain too.
 *
 * The header counts even when `Connection` names it. Otherwise a client could make the gateway ignore the proxy's entry.
 *
 * @param forwardedFor the value of `X-Forwarded-For`; no other header, because a proxy that does not know it passes a
 *   client's own on
 */
export function clientAddress(
  peer: string,
  forwardedFor: string | null,
  isTrusted: IsTrustedProxy,
): string | undefined {
  let client = parseAddress(peer);
  const chain = forwardedFor ?? '';
  for (let end = chain.length; end > 0 && client !== undefined && isTrusted(client); ) {
    const comma = chain.lastIndexOf(',', end - 1);
    const named = parseAddress(chain.slice(comma + 1, end));
    if (named === undefined) break;
    client = named;
    end = comma;
  }
  return client;
}

/** Accepts what proxies write: brackets, ports and zones. */
function parseAddress(written: string): string | undefined {
  const text = written.trim();
  const [, ipv6, ipv4] = BRACKETS_OR_PORT.exec(text) ?? [];
  return canonicalAddress((ipv6 ?? ipv4 ?? text).replace(/%.*$/, ''));
}
