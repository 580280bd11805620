import { expect, it } from 'bun:test';
import {
  EXPOSED_HEADERS,
  forwardedRequestHeaders,
  generationHeaders,
  relayedHeaders,
  VARY,
} from '../../src/gateway/http/forwarded-headers.ts';

const VIA = '1.1 music-gateway';
const MAPPING = { requestUrl: 'http://u.test/v1/x', upstreamUrl: 'http://u.test', gatewayPath: '/api' };

function forwarded(headers: Record<string, string>) {
  return forwardedRequestHeaders(new Request('http://gateway.test/', { headers }));
}

function relayed(headers: Record<string, string>) {
  return relayedHeaders(new Headers(headers), MAPPING, VARY.session);
}

// Which headers are listed: integration/relay/forwarded-headers.test.ts.
it('a proxied request names the gateway in Via, behind the proxy in front if that has 1 KB of text', () => {
  const longest = `1.1 ${'e'.repeat(1020)}`;
  for (const via of ['1.1 edge.test, 1.0 fred (a comment)', longest])
    expect(forwarded({ via })).toEqual({ via: `${via}, ${VIA}` });
  for (const via of [`${longest}e`, '1.1 edge\x7f', '1.1 edg\xe9', ''])
    expect(forwarded({ via })).toEqual({ via: VIA });
});

it('headers that Connection names do not pass', () => {
  const request = { 'if-match': '"1"', range: 'bytes=0-1', via: '1.1 a', pragma: 'x' };
  expect(forwarded({ ...request, connection: ' ,IF-MATCH,range , via' })).toEqual({ via: VIA, pragma: 'x' });
  const response = { etag: '"1"', 'x-ratelimit-used': '3', link: '<x>', age: '0', location: '/admin' };
  const passed = relayed({ ...response, connection: 'Close, ETAG, x-ratelimit-used , link' });
  // Nor does an address that the gateway does not serve.
  expect(Object.keys(passed)).toEqual(['age', 'content-security-policy', 'vary', 'cache-control']);
  const audio = { 'x-generation-id': '1', 'content-type': 'audio/wav', 'x-music-creation-id': '2' };
  expect(generationHeaders(new Headers({ ...audio, connection: 'X-Generation-Id, content-type' }))).toEqual({
    'content-type': 'audio/mpeg',
    'cache-control': 'no-store',
    'x-music-creation-id': '2',
  });
});

it.each([
  ['origin, cookie, Accept, accept', 'Origin, Cookie, Accept'],
  ['Accept, a b, "c", , d(e), x-y', 'Origin, Cookie, Accept, x-y'],
  ['Accept, * ,x', '*'],
])('a relayed response varies by what the upstream names, too: %j', (vary, expected) => {
  expect(relayed({ vary })['vary']).toBe(expected);
});

it.each([
  ['no directive', {}, 'private'],
  ['Expires', { expires: 'Thu, 01 Jan 2099 00:00:00 GMT' }, 'private'],
  ['one that Connection names', { 'cache-control': 'public', connection: 'cache-control' }, 'private'],
  ...['max-age=600', 'no-cache', 'x-public, s-maxages=1', 'private="a", x="public"', 'x=", public', ''].map(
    (value): [string, Record<string, string>, string] => [
      value,
      { 'cache-control': value },
      value && `private, ${value}`,
    ],
  ),
])('shared caches do not keep the response to a session with %s', (_, headers, expected) => {
  expect(relayed(headers)['cache-control']).toBe(expected || 'private');
});

it.each([
  'PUBLIC, max-age=600',
  'max-age=5,public',
  'max-age=5, s-maxage=600',
  's-maxage = "6"',
  'Must-Revalidate',
  'private',
  'no-store',
])('the caching of a response to a session is as the upstream has settled it: %s', (value) => {
  expect(relayed({ 'cache-control': value })['cache-control']).toBe(value);
});

it.each([
  ['Text/Event-Stream; charset=utf-8', { 'x-accel-buffering': 'no', incremental: '?1' }],
  ['text/event-streams', {}],
])('a response of type %s asks proxies not to hold it back: %j', (type, expected) => {
  const { 'x-accel-buffering': buffering, incremental } = relayed({ 'content-type': type });
  expect({
    ...(buffering && { 'x-accel-buffering': buffering }),
    ...(incremental && { incremental }),
  }).toEqual(expected);
});

it('a relayed response lets scripts read every rate limit that it has, listed or not', () => {
  const exposed = (headers: Record<string, string>) => relayed(headers)['access-control-expose-headers'];
  const unlisted = { 'ratelimit-resource': 'core', 'x-ratelimit-used': '3' };
  expect(exposed(unlisted)).toBe([...EXPOSED_HEADERS, ...Object.keys(unlisted)].join(', '));
});
