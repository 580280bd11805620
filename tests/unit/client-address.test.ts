import { describe, expect, it } from 'bun:test';
import { clientAddress, clientAddressHeaders } from '../../src/gateway/http/client-address.ts';
import { testSettings } from '../support/world.ts';

const CLIENT = '203.0.113.7';
const FORGED = '198.51.100.9';
const PROXY = '127.0.0.1';
const { isTrustedProxy = () => false } = testSettings({
  UPSTREAM_URL: 'http://upstream.test',
  IDP_URL: 'http://idp.test',
  FORWARD_CLIENT_ADDRESS: 'true',
  TRUSTED_PROXIES: '127.0.0.1, 10.0.0.0/8, ::1, fd00::/8, fe80::1',
});
/** Not an address, so the entry before it counts. */
const NO_ADDRESS = `1.2.3 1.2.3.4.5 01.2.3.4 0x1.2.3.4 256.1.1.1 16909060 1.2.3.4/8 1.2.3.4: 1.2.3.4:123456 for=1.2.3.4
  "1.2.3.4" 2001:db8::g 1::2::3 [::7 ::7] [::7]80 [] % unknown 1.2.3.4;x １.2.3.4 [::7],x]`;

function addressOf(peer: string, forwardedFor: string | null): string | undefined {
  return clientAddress(peer, forwardedFor, isTrustedProxy);
}

describe('the address of a client', () => {
  it.each([
    ['the peer, when it is not a trusted proxy', CLIENT, FORGED, CLIENT],
    ['the proxy, when it names nobody', PROXY, null, PROXY],
    ['what a proxy has appended', PROXY, `${FORGED}, 10.9.9.9,${CLIENT}:443 ,\t10.1.2.3 \t`, CLIENT],
    ['not changed by a forged quote', PROXY, `"${FORGED}, ${CLIENT}, 10.0.0.1`, CLIENT],
    ['the first one, when all are trusted', PROXY, '10.0.0.2, 10.0.0.1', '10.0.0.2'],
    ['the last one before an empty entry', PROXY, `${CLIENT}, , 10.0.0.1`, '10.0.0.1'],
    ['an IPv6 address in its short form', PROXY, '2001:DB8:0:0:0::0007', '2001:db8::7'],
    ['behind an IPv6 proxy', '0:0:0:0:0:0:0:1', `${FORGED}, 2001:db8::7, fd12::3`, '2001:db8::7'],
    ['an IPv4-mapped peer as IPv4', `::ffff:${CLIENT}`, FORGED, CLIENT],
    ['past an IPv4-mapped proxy', `::FFFF:${PROXY}`, `${FORGED}, ${CLIENT}`, CLIENT],
    ['an IPv6 address whose last group resembles a port', PROXY, '2001:db8::7:80', '2001:db8::7:80'],
    ['past a proxy with a zone', 'fe80::1%eth0', `${FORGED}, ${CLIENT}`, CLIENT],
    ['an address in brackets with a zone and a port', PROXY, '[fe80::7%25eth0]:80', 'fe80::7'],
    ['nothing, when the peer has no address', '', CLIENT, undefined],
  ])('is %s', (_, peer, forwardedFor, address) => {
    expect(addressOf(peer, forwardedFor)).toBe(address);
  });

  it('is not what is no address', () => {
    for (const entry of [...NO_ADDRESS.split(/\s+/), '', '1.2.3.4 5.6.7.8'])
      expect(addressOf(PROXY, `${CLIENT}, ${entry}`), entry).toBe(PROXY);
  });
});

describe('the headers with the address of a client', () => {
  const server = (address: string) => ({ requestIP: () => ({ address, port: 1, family: 'IPv4' as const }) });

  it.each([
    [CLIENT, `for=${CLIENT}`],
    ['2001:db8::7', 'for="[2001:db8::7]"'],
  ])('have the form of RFC 7239, whatever Connection names: %s', (address, forwarded) => {
    const headers = { 'x-forwarded-for': `${FORGED}, ${address}`, connection: 'x-forwarded-for, forwarded' };
    const request = new Request('http://gateway.test/', { headers });
    const expected = { forwarded, 'x-forwarded-for': address };
    expect(clientAddressHeaders(request, server(PROXY), isTrustedProxy)).toEqual(expected);
  });

  it('are none when the connection is closed, and without a server', () => {
    for (const nobody of [{ requestIP: () => null }, null])
      expect(clientAddressHeaders(new Request('http://g/'), nobody, isTrustedProxy)).toBeUndefined();
  });
});
