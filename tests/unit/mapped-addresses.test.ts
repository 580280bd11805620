import { expect, it } from 'bun:test';
import { mapAddress, mapLinks } from '../../src/gateway/http/mapped-addresses.ts';
import { expectLinear } from '../support/linear-time.ts';

const MAPPING = {
  requestUrl: 'http://upstream.test/base/v1/dir/start?page=1',
  upstreamUrl: 'http://upstream.test/base',
  gatewayPath: '/api/upstream',
};
/** The gateway does not serve these, and they would reveal the upstream's host. */
const NOT_SERVED = `/base/v2/elsewhere /base/v1x/elsewhere /v1/elsewhere /base/v1/%2e%2e/v2/elsewhere ../../elsewhere
  //upstream.test/admin https://upstream.test/base/v1/x http://upstream.test:8080/base/v1/x //upstream.test./x http://user:secret@upstream.test/base/v1/elsewhere`;

it.each([
  ['http://upstream.test/base/v1/elsewhere?a=b#c', '/api/upstream/v1/elsewhere?a=b#c'],
  ['http://UPSTREAM.test:80/base/v1/x', '/api/upstream/v1/x'],
  ['../elsewhere.sw.json', '/api/upstream/v1/elsewhere.sw.json'],
  ['?page=2', '/api/upstream/v1/dir/start?page=2'],
  ['/base/v2/../v1/elsewhere', '/api/upstream/v1/elsewhere'],
  ['http://upstream.test.evil.test/base/v1/x', 'http://upstream.test.evil.test/base/v1/x'],
  ['//cdn.test/a?y=a%2Bb', '//cdn.test/a?y=a%2Bb'],
  ...NOT_SERVED.split(/\s+/).map((address): [string, undefined] => [address, undefined]),
])('the address %s is mapped to %s', (address, expected) => {
  expect(mapAddress(address, MAPPING)).toBe(expected);
});

const TITLE = 'title="a, b; <c> \\" d"';
const [X, Y] = ['</api/upstream/v1/x>', '</api/upstream/v1/y>'];

it.each([
  ['<?page=2>; rel=next', '</api/upstream/v1/dir/start?page=2>; rel=next'],
  [`</base/v1/x,;>; ${TITLE}, </base/v1/y>`, `</api/upstream/v1/x,;>; ${TITLE}, ${Y}`],
  [',\t, </base/v1/x>,, ,</base/v1/y>; a=b ,, ', `${X}, ${Y}; a=b `],
  // The start of a link in a title counts as a link, and what is left of the title is dropped.
  ['</base/v1/x>, <z>; title="a, <http://upstream.test/base/v1/b>; c", </base/v1/y>', `${X}, ${Y}`],
  ...['', ',', 'http://upstream.test/base/v1/x', '"<x>"'].map((header): [string, undefined] => [
    header,
    undefined,
  ]),
])('the targets of the links %s are mapped', (header, expected) => {
  expect(mapLinks(header, MAPPING)).toBe(expected);
});

it.each([
  '</admin>; rel=up',
  // These would reveal the upstream's address.
  ...['<x>; rel=http://upstream.test/next', '<http://docs.test/>; a="b HTTP://UPSTREAM.test/c"'],
  '<http://docs.test/>; a="http:/\\/upstr\\eam.test/"',
  '<http://docs.test/>; a="http://upstream.test:8080/"',
  // These cannot be parsed.
  ...['<http://[not-an-address/>', '<x> <y>', '<x', '<x>; a=>', '<x>; title="a\\"', '<x>; rel="next"more'],
  // What is no link makes the link before it one that cannot be parsed.
  '<x>, http://upstream.test/base/v1/y; rel=next',
])('the link %s is dropped, and the others are kept', (header) => {
  expect(mapLinks(header, MAPPING)).toBeUndefined();
  expect(mapLinks(`</base/v1/x>, ${header}, </base/v1/y>`, MAPPING)).toBe(`${X}, ${Y}`);
});

it('the first 50 links are mapped, and none of a header of more than 16 KB', () => {
  const links = Array.from({ length: 51 }, (_, at) => `<${at}>`).join(', ');
  expect(mapLinks(links, MAPPING)).toEndWith('</api/upstream/v1/dir/49>');
  expect(mapLinks('<x>; title='.padEnd(16_384, 'a'), MAPPING)).toBeDefined();
  expect(mapLinks('<x>; title='.padEnd(16_385, 'a'), MAPPING)).toBeUndefined();
});

// A pattern that can match in two ways would take minutes.
it('16 KB of links are judged in linear time', () => {
  for (const piece of ['<', '"', '\\"', ';', ' ', ',', '; ', '<a>,', '="', '<>;', ';a="'])
    for (const start of ['', '<a>', '<a>; title="']) {
      const map = (bytes: number) => mapLinks(start + piece.repeat(bytes / piece.length), MAPPING);
      expectLinear(map, 16_000, start + piece);
    }
});
