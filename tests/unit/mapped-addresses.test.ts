import { describe, expect, it } from 'bun:test';
import { mapLinks } from '../../src/gateway/http/mapped-addresses.ts';

const MAPPING = {
  requestUrl: 'http://upstream.test/base/v1/library?page=1',
  upstreamUrl: 'http://upstream.test/base',
  gatewayPath: '/api/upstream',
};

describe('mapLinks()', () => {
  it.each([
    ['<?page=2>; rel=next', '</api/upstream/v1/library?page=2>; rel=next'],
    ['</base/v1/x>;rel="next"', '</api/upstream/v1/x>;rel="next"'],
    ['<http://UPSTREAM.test:80/base/v1/x>', '</api/upstream/v1/x>'],
    [
      '</base/v1/a,b;c>; title="a, b; <c> \\" d", <x>',
      '</api/upstream/v1/a,b;c>; title="a, b; <c> \\" d", </api/upstream/v1/x>',
    ],
    [
      '<x>; title="ends with \\\\", <y>',
      '</api/upstream/v1/x>; title="ends with \\\\", </api/upstream/v1/y>',
    ],
    ['<x> ; rel = "next" ; flag ; ;', '</api/upstream/v1/x> ; rel = "next" ; flag ; ;'],
    [
      "<x>; title*=UTF-8''a%20b; type=audio/mpeg",
      "</api/upstream/v1/x>; title*=UTF-8''a%20b; type=audio/mpeg",
    ],
    [',\t, <x>,, ,<y>; a=b ,, ', '</api/upstream/v1/x>, </api/upstream/v1/y>; a=b '],
  ])('maps the target of %s', (header, expected) => {
    expect(mapLinks(header, MAPPING)).toBe(expected);
  });

  it.each([
    '<https://docs.test/a?b=c>; rel="help"',
    '<//cdn.test/a>',
    '<http://upstream.test.evil.test/base/v1/x>',
    '<mailto:a@docs.test>; rel=author',
  ])('passes a link elsewhere: %s', (header) => {
    expect(mapLinks(header, MAPPING)).toBe(header);
  });

  it.each([
    // The gateway does not serve these.
    ...['</admin>; rel=up', '</base>', '</base/v1/../admin>', '<https://upstream.test/base/v1/x>'],
    ...['<//upstream.test/base/v2/x>', '<http://user:secret@upstream.test/base/v1/x>'],
    // These would reveal the upstream's address.
    '<x>; rel=http://upstream.test/relations/next',
    '<http://docs.test/>; rel="next http://upstream.test/relations/next"',
    '<https://docs.test/>; anchor="HTTP://UPSTREAM.test/admin"',
    '<https://docs.test/>; anchor="http:/\\/upstr\\eam.test/admin"',
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
    expect(mapLinks(`<x>, ${header}, <y>`, MAPPING)).toBe('</api/upstream/v1/x>, </api/upstream/v1/y>');
  });

  it.each(['', ',', 'http://upstream.test/base/v1/x; rel=next', 'rel=next', '"', '"<x>"'])(
    'drops a header without a link: %j',
    (header) => {
      expect(mapLinks(header, MAPPING)).toBeUndefined();
    },
  );

  it('takes the start of a link in a title for a link, and drops what is left of the title', () => {
    const header = '<x>, <y>; title="a, <http://upstream.test/base/v1/b>; c", <z>';
    expect(mapLinks(header, MAPPING)).toBe('</api/upstream/v1/x>, </api/upstream/v1/z>');
  });

  it('maps the first 50 links, and none of a header of more than 16 KB', () => {
    const links = (count: number) => Array.from({ length: count }, (_, at) => `<${at}>`).join(', ');
    expect(mapLinks(links(50), MAPPING)).toEndWith('</api/upstream/v1/49>');
    expect(mapLinks(links(51), MAPPING)).toEndWith('</api/upstream/v1/49>');
    const padded = (length: number) => '<x>; title=""'.replace('""', `"${'a'.repeat(length - 13)}"`);
    expect(mapLinks(padded(16_384), MAPPING)).toBeDefined();
    expect(mapLinks(padded(16_385), MAPPING)).toBeUndefined();
  });

  it.each(['<', '"', '\\"', ';', ' ', ',', '; ', '<a>,', '="', '<>;', ';a="'])(
    'does not take seconds for 16 KB of %j',
    (piece) => {
      const longPath = { ...MAPPING, requestUrl: `${MAPPING.requestUrl}${'x'.repeat(12_000)}` };
      const pieces = piece.repeat(16_000 / piece.length);
      const before = process.cpuUsage();
      for (const start of ['', '<a>', '<a>; title="']) mapLinks(start + pieces, longPath);
      const { user } = process.cpuUsage(before);
      // A quadratic parser takes seconds, whatever else the machine does.
      expect(user / 1000).toBeLessThan(1000);
    },
  );
});
