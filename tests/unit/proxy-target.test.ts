import { describe, expect, it } from 'bun:test';
import fc from 'fast-check';
import { parseTarget } from '../../src/gateway/routes/proxy-target.ts';
import * as PATHS from '../support/proxied-paths.ts';

const UPSTREAM = 'http://upstream.test/base';

function parse(path: string, upstreamUrl = UPSTREAM, method = 'GET') {
  return parseTarget({ method, url: `http://gateway.test/api/upstream${path}` }, upstreamUrl);
}

// What the server makes of a target before it arrives here: integration/relay/proxied-paths.test.ts.
describe('parseTarget()', () => {
  it.each(Object.entries(PATHS.REFUSED_PATHS))('refuses %s', (_, paths) => {
    for (const path of paths) expect([path, parse(path)]).toEqual([path, undefined]);
  });

  it.each([
    ['with the session', PATHS.FORWARDED_PATHS, 'GET', false],
    ['with the session when they are only close to public ones', PATHS.NEARLY_PUBLIC_PATHS, 'GET', false],
    ['with the session when a public one is to be changed', PATHS.PUBLIC_PATHS, 'HEAD', false],
    ['without the session', PATHS.PUBLIC_PATHS, 'GET', true],
  ])('passes paths unchanged, %s', (_, paths, method, isPublic) => {
    for (const path of paths) {
      expect([path, parse(path, UPSTREAM, method)]).toEqual([path, { url: UPSTREAM + path, isPublic }]);
    }
  });

  it('encodes what is not ASCII, and does not call its path public', () => {
    const url = `${UPSTREAM}/v1/music/public/%C3%A9%F0%9F%8E%B5`;
    expect(parse('/v1/music/public/é🎵')).toEqual({ url, isPublic: false });
  });

  it.each([
    ...['http://upstream.test', 'https://upstream.test:8443', 'http://upstream.test/two/Parts'],
    ...['http://upstream.test/a%20b', 'http://[::1]:8080/base'],
  ])('puts the path behind the base address %s, and never makes another host of it', (upstreamUrl) => {
    expect(parse('/v1/me?a=b', upstreamUrl)?.url).toBe(new URL(`${upstreamUrl}/v1/me?a=b`).href);
    for (const path of Object.values(PATHS.REFUSED_PATHS).flat()) {
      // The default port does not make another host.
      if (path !== ':80/v1/me') expect([path, parse(path, upstreamUrl)]).toEqual([path, undefined]);
    }
  });

  // A quadratic pattern would take minutes.
  it('judges 400 KB in linear time', () => {
    for (const piece of ['%20', '.', ';', '%20;', '/', '%20/', '.;x/', 'x;'])
      parse(`/v1/${piece.repeat(400_000 / piece.length)}x`);
  }, 20_000);
});

const FRAGMENTS = [
  ...String.raw`/ / / // \ %2f %252F %25252f %5c %255C %25255c . .. .. ... %2e %2E%2e .%2e %252e %252e%252e %25252e
    %2525252e %25%32%65 %%32%65 %252%65 %2%35%32e %u002e ..; ..;x=1 .; ; %3b %253B ..%3b ..%253bx %00 %2500 %09
    %0a %0d%0a %250a %7f %20 ..%3f ..%23x ..%253f # %23 ? %3f %253f & = % %25 %2525 %zz %2 %c0%af %e0%80%af %ff
    @ @evil.test : :80 //evil.test http://evil.test/ ~ * | " < auth auth/ /auth/refresh ;/auth/x %61uth
    v1 v1 v2 admin music public content abc a 100%25 é %C3%A9 🎵`.split(/\s+/),
  ...[' ', '\t', '\n', '\r', '\0'],
];

/** Whether a server that decodes the path again and again would leave `/v1/`, or serve its tokens. */
function leadsAstray(url: string): boolean {
  const { href, pathname, hash } = new URL(url);
  if (href !== url || hash || !url.startsWith(`${UPSTREAM}/v1/`)) return true;
  let path = pathname.slice('/base/'.length);
  for (let round = 0; round <= 4; round++) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
    if (/[\x00-\x1f\x7f\\]/.test(path)) return true;
    for (const read of [path, path.split(/[?#]/, 1).join()]) {
      const names = read.split('/').map((segment) => segment.replace(/;.*/s, '').trim());
      if (names.includes('.') || names.includes('..')) return true;
      if (names.filter((name) => name.replaceAll('.', ''))[1] === 'auth') return true;
    }
    path = path.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
  return false;
}

it('a random target never leaves the base and /v1/', () => {
  let taken = 0;
  const start = fc.constantFrom(...Array.from({ length: 9 }, () => '/v1/'), '');
  const rest = fc.array(fc.constantFrom(...FRAGMENTS), { minLength: 1, maxLength: 6, size: 'max' });
  fc.assert(
    fc.property(start, rest, (prefix, fragments) => {
      const target = parse(prefix + fragments.join(''));
      if (!target) return;
      taken++;
      expect([target.url, leadsAstray(target.url)]).toEqual([target.url, false]);
    }),
    { numRuns: 20_000, seed: 24 },
  );
  // Refusing everything would pass as well.
  expect(taken).toBeGreaterThan(1000);
});
