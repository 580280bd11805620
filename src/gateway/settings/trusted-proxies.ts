/** Reads which proxies may name a client's address and host, and writes addresses in their one canonical form. */

import type { EnvironmentReader } from './environment-reader.ts';

/** Whether this is the address of a trusted proxy. It must have the form of {@link canonicalAddress}. */
export type IsTrustedProxy = (address: string) => boolean;

export function readTrustedProxies(read: EnvironmentReader): IsTrustedProxy {
  const entries = read.list('TRUSTED_PROXIES');
  if (!entries.length) return () => false;
  const networks = new (loadNet().BlockList)();
  for (const entry of entries) {
    const network = parseNetwork(entry);
    if (!network) {
      read.problems.push(`TRUSTED_PROXIES: "${entry}" is not an address or a network like 10.0.0.0/8`);
    } else if (network.prefix === 0) {
      read.problems.push(`TRUSTED_PROXIES: "${entry}" would trust every client`);
    } else networks.addSubnet(network.address, network.prefix, familyOf(network.address));
  }
  return (address) => networks.check(address, familyOf(address));
}

/**
 * Returns an address in its one canonical form, so that texts can be compared, and an IPv4-mapped IPv6 address as the
 * IPv4 address; undefined when the text is not an address, and for one with a zone.
 *
 * @see RFC 5952 section 4, RFC 4291 section 2.5.5.2
 */
export function canonicalAddress(text: string): string | undefined {
  const version = loadNet().isIP(text);
  if (version === 4) return text;
  const address = version === 6 ? URL.parse(`http://[${text}]`)?.hostname.slice(1, -1) : undefined;
  const [, high, low] = /^::ffff:([\da-f]+):([\da-f]+)$/.exec(address ?? '') ?? [];
  if (high === undefined || low === undefined) return address;
  return URL.parse(`http://0x${high}${low.padStart(4, '0')}`)?.hostname;
}

/** A single address is a network of its full length. */
function parseNetwork(entry: string): { readonly address: string; readonly prefix: number } | undefined {
  const [, text = '', length] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(entry) ?? [];
  const address = canonicalAddress(text);
  if (address === undefined) return undefined;
  const longest = familyOf(address) === 'ipv6' ? 128 : 32;
  const prefix = Number(length ?? longest);
  return prefix <= longest ? { address, prefix } : undefined;
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return address.includes(':') ? 'ipv6' : 'ipv4';
}

function loadNet() {
  return process.getBuiltinModule('node:net');
}
