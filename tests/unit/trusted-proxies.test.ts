import { expect, it } from 'bun:test';
import { EnvironmentReader } from '../../src/gateway/settings/environment-reader.ts';
import { readTrustedProxies } from '../../src/gateway/settings/trusted-proxies.ts';

function read(TRUSTED_PROXIES: string) {
  const reader = new EnvironmentReader({ TRUSTED_PROXIES });
  const isTrusted = readTrustedProxies(reader);
  return { isTrusted, problems: reader.problems, warnings: reader.warnings };
}

it.each([
  [' , ', '', '127.0.0.1 ::1'],
  ['10.0.0.0/8', '10.0.0.0 10.255.255.255', '9.255.255.255 11.0.0.0'],
  ['10.1.2.3/9', '10.0.0.1 10.127.0.1', '10.128.0.1'],
  ['::1', '::1', '::2 0.0.0.1'],
  ['2001:DB8::/33', '2001:db8:: 2001:db8:7fff::1', '2001:db8:8000::'],
  ['::ffff:10.0.0.1', '10.0.0.1', '10.0.0.2'],
  [' ::1 ,, 10.0.0.0/8 , 192.0.2.7,', '::1 10.9.9.9 192.0.2.7', '11.0.0.0 192.0.2.8'],
])('TRUSTED_PROXIES=%s trusts %s, and not %s', (value, trusted, others) => {
  const { isTrusted, problems, warnings } = read(value);
  const addresses = `${trusted} ${others}`.trim().split(' ');
  expect(addresses.filter((address) => isTrusted(address)).join(' ')).toBe(trusted);
  expect([...problems, ...warnings]).toEqual([]);
});

it.each([
  [
    'is not an address or a network like 10.0.0.0/8',
    '10.0.0.0/33 ::/129 10.0.0.0/ 10.0.0/8 localhost [::1] fe80::1%eth0 ::ffff:10.0.0.0/104 10.0.0.0/8/8',
  ],
  ['would trust every client', '0.0.0.0/0 10.0.0.1/0 ::/0'],
])('TRUSTED_PROXIES %s: %s', (problem, values) => {
  for (const value of values.split(/\s+/))
    expect(read(`127.0.0.1,${value}`).problems).toEqual([`TRUSTED_PROXIES: "${value}" ${problem}`]);
});
