import { expect, it } from 'bun:test';
import { parseTarget } from '../../src/gateway/routes/proxy-target.ts';
import { expectLinear } from '../support/linear-time.ts';
import * as PATHS from '../support/proxied-paths.ts';

const UPSTREAM = 'http://upstream.test/base';
const REFUSED = [...Object.values(PATHS.REFUSED_PATHS).flat(), ...PATHS.RESOLVED_PATHS];

function parse(path: string, upstreamUrl = UPSTREAM) {
  return parseTarget({ method: 'GET', url: `http://gateway.test/api/upstream${path}` }, upstreamUrl);
}

// Which pass, and what the server makes of a target before: relay/proxied-paths.test.ts; random ones: faults/fuzz.
it.each([
  UPSTREAM,
  'http://upstream.test',
  'https://upstream.test:8443',
  'http://upstream.test/two/Parts',
  'http://upstream.test/a%20b',
  'http://[::1]:8080/base',
])('a path goes behind the base address %s or is refused, and never makes another host', (upstreamUrl) => {
  expect(parse('/v1/me?a=b', upstreamUrl)?.url).toBe(new URL(`${upstreamUrl}/v1/me?a=b`).href);
  for (const path of REFUSED) {
    // The default port does not make another host.
    if (path !== ':80/v1/me') expect([path, parse(path, upstreamUrl)]).toEqual([path, undefined]);
  }
});

it('400 KB are judged in linear time', () => {
  for (const piece of ['%20', '.', ';', '%20;', '/', '%20/', '.;x/', 'x;'])
    expectLinear((bytes) => parse(`/v1/${piece.repeat(bytes / piece.length)}x`), 400_000, piece);
});
