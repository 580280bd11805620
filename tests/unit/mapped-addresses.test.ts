import { describe, expect, it } from 'bun:test';
import { mapAddress, mapLinks } from '../../src/gateway/http/mapped-addresses.ts';

const MAPPING = {
  requestUrl: 'http://upstream.test/base/v1/dir/start?page=1',
  upstreamUrl: 'http://upstream.test/base',
  gatewayPath: '/api/upstream',
};

describe('mapAddress()', () => {
  it.each([
    ['http://upstream.test/base/v1/elsewhere?a=b#c', '/api/upstream/v1/elsewhere?a=b#c'],
    ['http://UPSTREAM.test:80/base/v1/x', '/api/upstream/v1/x'],
    ['/base/v1/', '/api/upstream/v1/'],
    ['elsewhere.sw.json', '/api/upstream/v1/dir/elsewhere.sw.json'],
    ['../elsewhere', '/api/upstream/v1/elsewhere'],
    ['?page=2', '/api/upstream/v1/dir/start?page=2'],
    ['/base/v2/../v1/elsewhere', '/api/upstream/v1/elsewhere'],
    // Other hosts are kept.
    ['https://cdn.test/base/v1/track?signature=a%2Bb', 'https://cdn.test/base/v1/track?signature=a%2Bb'],
    ['http://upstream.test.evil.test/base/v1/x', 'http://upstream.test.evil.test/base/v1/x'],
    ['//cdn.test/a', '//cdn.test/a'],
  ])('maps %s to %s', (address, expected) => {
    expect(mapAddress(address, MAPPING)).toBe(expected);
  });

  it.each([
    ...[
      '/base/v2/elsewhere',
      '/base/admin',
      '/base/v1',
      '/base/v1x/elsewhere',
      '/base',
      '/v1/elsewhere',
      '/admin',
    ],
    ...[
      '/base/v1/../v2/elsewhere',
      '/base/v1/%2e%2e/v2/elsewhere',
      '../../elsewhere',
      '//upstream.test/admin',
    ],
    ...['http://user:secret@upstream.test/base/v1/elsewhere', 'https://upstream.test/base/v1/x'],
    'http://[not-an-address/',
  ])('drops %s, which the gateway does not serve', (address) => {
    expect(mapAddress(address, MAPPING)).toBeUndefined();
  });
});

describe('mapLinks()', () => {
  it.each([
    ['<?page=2>; rel=next', '</api/upstream/v1/dir/start?page=2>; rel=next'],
    [
      '</base/v1/a,b;c>; title="a, b; <c> \\" d", </base/v1/x>',
      '</api/upstream/v1/a,b;c>; title="a, b; <c> \\" d", </api/upstream/v1/x>',
    ],
    ['</base/v1/x>; title="\\\\", </base/v1/y>', '</api/upstream/v1/x>; title="\\\\", </api/upstream/v1/y>'],
    ['</base/v1/x> ; rel = "next" ; flag ; ;', '</api/upstream/v1/x> ; rel = "next" ; flag ; ;'],
    ["</base/v1/x>; title*=UTF-8''a%20b; type=a/b", "</api/upstream/v1/x>; title*=UTF-8''a%20b; type=a/b"],
    [',\t, </base/v1/x>,, ,</base/v1/y>; a=b ,, ', '</api/upstream/v1/x>, </api/upstream/v1/y>; a=b '],
    ['<mailto:a@docs.test>; rel=author', '<mailto:a@docs.test>; rel=author'],
  ])('maps the targets of %s', (header, expected) => {
    expect(mapLinks(header, MAPPING)).toBe(expected);
  });

  it.each([
    '</admin>; rel=up',
    // These would reveal the upstream's address.
    ...['<x>; rel=http://upstream.test/next', '<http://docs.test/>; rel="next http://upstream.test/next"'],
    ...[
      '<http://docs.test/>; a="HTTP://UPSTREAM.test/b"',
      '<http://docs.test/>; a="http:/\\/upstr\\eam.test/"',
    ],
    // These cannot be parsed.
    ...[
      '<http://[not-an-address/>',
      '<http://upstream.test/base/v1/a; title=<b>',
      '<x> <y>',
      '<x',
      '<x>; a=>',
    ],
    ...['<x>; title="a', '<x>; title="a\\"', '<x> rel=next', '<x>; rel="next"more', '<x>; a="b" c=d'],
    // What is no link makes the link before it one that cannot be parsed.
    ...['<x>, http://upstream.test/base/v1/y; rel=next', '<x>, rel=next', '<x>, "<x>"'],
  ])('drops the link %s, and keeps the others', (header) => {
    expect(mapLinks(header, MAPPING)).toBeUndefined();
    expect(mapLinks(`<x>, ${header}, <y>`, MAPPING)).toBe(
      '</api/upstream/v1/dir/x>, </api/upstream/v1/dir/y>',
    );
  });

  it.each(['', ',', 'http://upstream.test/base/v1/x; rel=next', 'rel=next', '"', '"<x>"'])(
    'drops a header without a link: %j',
    (header) => {
      expect(mapLinks(header, MAPPING)).toBeUndefined();
    },
  );

  it('takes the start of a link in a title for a link, and drops what is left of the title', () => {
    const header = '<x>, <y>; title="a, <http://upstream.test/base/v1/b>; c", <z>';
    expect(mapLinks(header, MAPPING)).toBe('</api/upstream/v1/dir/x>, </api/upstream/v1/dir/z>');
  });

  it('maps the first 50 links, and none of a header of more than 16 KB', () => {
    const links = Array.from({ length: 51 }, (_, at) => `<${at}>`).join(', ');
    expect(mapLinks(links, MAPPING)).toEndWith('</api/upstream/v1/dir/49>');
    expect(mapLinks('<x>; title='.padEnd(16_384, 'a'), MAPPING)).toBeDefined();
    expect(mapLinks('<x>; title='.padEnd(16_385, 'a'), MAPPING)).toBeUndefined();
  });

  // A pattern that can match in two ways would take minutes.
  it.each(['<', '"', '\\"', ';', ' ', ',', '; ', '<a>,', '="', '<>;', ';a="'])(
    'judges 16 KB of %j at once',
    (piece) => {
      for (const start of ['', '<a>', '<a>; title="']) {
        mapLinks(start + piece.repeat(16_000 / piece.length), MAPPING);
      }
    },
    20_000,
  );
});
