import { expect, it } from 'bun:test';
import { clientAddress, clientAddressHeaders } from '../../src/gateway/http/client-address.ts';
import { testSettings } from '../support/world.ts';

const CLIENT = '203.0.113.7';
const FORGED = '198.51.100.9';
const PROXY = '127.0.0.1';
/** Not an address, so the entry before it counts. */
const NO_ADDRESS = `1.2.3 1.2.3.4.5 01.2.3.4 0x1.2.3.4 256.1.1.1 16909060 1.2.3.4/8 1.2.3.4: 1.2.3.4:123456 for=1.2.3.4
  "1.2.3.4" 2001:db8::g 1::2::3 [::7 ::7] [::7]80 [] % unknown 1.2.3.4;x １.2.3.4 [::7],x]`;

const trusting = (TRUSTED_PROXIES: string) => testSettings({ TRUSTED_PROXIES }).isTrustedProxy;

// What it must not be: settings.test.ts.
it.each([
  [' , ', '', '127.0.0.1 ::1'],
  ['10.1.2.3/9', '10.0.0.0 10.127.255.255', '9.255.255.255 10.128.0.0'],
  ['2001:DB8::/33', '2001:db8:: 2001:db8:7fff::1', '2001:db8:8000::'],
  ['::ffff:10.0.0.1', '10.0.0.1', '10.0.0.2'],
  [' ::1 ,, 10.0.0.0/8 , 192.0.2.7,', '::1 10.9.9.9 192.0.2.7', '::2 0.0.0.1 11.0.0.0 192.0.2.8'],
])('TRUSTED_PROXIES=%s trusts %s, and not %s', (value, trusted, others) => {
  const addresses = `${trusted} ${others}`.trim().split(' ');
  expect(addresses.filter(trusting(value)).join(' ')).toBe(trusted);
});

const isTrusted = trusting('127.0.0.1, 10.0.0.0/8, ::1, fd00::/8, fe80::1');

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
])('the address of a client is %s', (_, peer, forwardedFor, address) => {
  expect(clientAddress(peer, forwardedFor, isTrusted)).toBe(address);
});

it('the address of a client is not what is no address', () => {
  for (const entry of [...NO_ADDRESS.split(/\s+/), '', '1.2.3.4 5.6.7.8'])
    expect(clientAddress(PROXY, `${CLIENT}, ${entry}`, isTrusted), entry).toBe(PROXY);
});

it('an IPv6 address has the form of RFC 7239, also when Connection names it; a closed connection has none', () => {
  const headers = { 'x-forwarded-for': `${FORGED}, 2001:db8::7`, connection: 'x-forwarded-for, forwarded' };
  const request = new Request('http://gateway.test/', { headers });
  const server = { requestIP: () => ({ address: PROXY, port: 1, family: 'IPv4' as const }) };
  const expected = { forwarded: 'for="[2001:db8::7]"', 'x-forwarded-for': '2001:db8::7' };
  expect(clientAddressHeaders(request, server, isTrusted)).toEqual(expected);
  expect(clientAddressHeaders(request, { requestIP: () => null }, isTrusted)).toBeUndefined();
});
