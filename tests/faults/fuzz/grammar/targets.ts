/** Methods and request targets: the gateway's routes, and proxied paths with every escape. */

import fc, { type Arbitrary } from 'fast-check';
import { items, maybe, pick, rarely, words } from './choices.ts';
import { PLACEHOLDER } from './marker.ts';
import {
  AUTH_PATHS,
  ODD_PREFIXES,
  ODD_SEGMENTS,
  ODD_TARGETS,
  PARAMETER_SEGMENTS,
  QUERIES,
} from './odd-paths.ts';

export interface Aim {
  readonly method: string;
  readonly target: string;
}

const METHODS = words('GET HEAD POST PUT PATCH DELETE');
const ODD_METHODS = [...words('OPTIONS TRACE CONNECT PROPFIND get GETT QUERY PRI M-SEARCH G\0T'), ''];
const ROUTES = items(`GET /api/auth/session | GET /api/music/models | POST /api/auth/idp | POST /api/auth/idp
  POST /api/auth/logout | POST /api/music/generate | POST /api/music/generate
  POST /api/music/generate | GET /api/health`);
const PROXY = '/api/upstream/v1/';
const PREFIXES = words('/api/upstream/v1 /api/upstream/ /api/upstream /api/upstream/v2/ /api/upstream//v1/');
const PLAIN_SEGMENTS = words("me music creations billing a%20b x.y ~u a:b a@b (a)'!* %C3%A9");
const ABSOLUTE_HOSTS = [...words('gateway.test evil.test 127.0.0.1:1 a@b x/api/health? [::1] x#'), ''];

export function aim(oddity: number): Arbitrary<Aim> {
  const usual = fc.oneof(
    { weight: 55, arbitrary: routed(oddity) },
    { weight: 45, arbitrary: proxied(oddity) },
  );
  const scheme = pick([...words('http https HTTP ftp file'), '']);
  return fc
    .tuple(
      usual,
      maybe(oddity, pick([...METHODS, ...ODD_METHODS])),
      maybe(oddity / 4, fc.tuple(scheme, pick(ABSOLUTE_HOSTS))),
    )
    .map(([{ method, target }, [other], [absolute]]) => ({
      method: other ?? method,
      target: absolute ? `${absolute[0]}://${absolute[1]}${target}` : target,
    }));
}

function routed(oddity: number): Arbitrary<Aim> {
  const route = fc.tuple(pick(ROUTES), maybe(0.2, query(oddity))).map(([each, [search = '']]) => {
    const [method = '', path = ''] = each.split(' ');
    return { method, target: path + search };
  });
  const odd = fc.record({ method: pick(METHODS), target: pick(ODD_TARGETS) });
  return rarely(oddity / 4, odd, rarely(oddity / 2, besideHealth(), route));
}

/** Resembles the one path without an origin rule, in case only a part of it is compared. */
function besideHealth(): Arbitrary<Aim> {
  const path = pick(['', '', '', '/api/upstream/v1', '/api/upstream/v1', '/api/auth']);
  const hidden = pick(words('/api/auth/session /api/music/models /api/upstream/v1/me'));
  const start = pick(['?', '?', '?x', '?/x/y/z']);
  return fc
    .tuple(path, pick([PLACEHOLDER, 'x']), start, rarely(0.2, fc.constant(PLACEHOLDER), hidden))
    .map(([path, name, start, end]) => ({
      method: 'GET',
      target: `${path}/${name}/api/health${start}${end}`,
    }));
}

function proxied(oddity: number): Arbitrary<Aim> {
  const method = pick(['GET', 'GET', 'GET', ...METHODS]);
  const target = rarely(
    0.2,
    publicPath(oddity),
    rarely(
      oddity / 3,
      pick(AUTH_PATHS).map((path) => `${PROXY}${path}?${PLACEHOLDER}`),
      path(oddity),
    ),
  );
  return fc.record({ method, target });
}

function path(oddity: number): Arbitrary<string> {
  const prefix = rarely(oddity / 2, pick([...PREFIXES, ...ODD_PREFIXES]), fc.constant(PROXY));
  const odd = rarely(0.3, pick(PARAMETER_SEGMENTS), pick(ODD_SEGMENTS));
  const segment = rarely(oddity, odd, pick([...PLAIN_SEGMENTS, PLACEHOLDER]));
  return fc
    .tuple(
      prefix,
      fc.array(segment, { minLength: 1, maxLength: 4 }),
      maybe(0.5, fc.nat(4)),
      maybe(oddity / 20, pick([300, 4000, 8000])),
      maybe(0.6, query(oddity)),
    )
    .map(([prefix, segments, [at], [long], [search = '']]) => {
      const marked =
        at === undefined ? segments : segments.toSpliced(at % (segments.length + 1), 0, PLACEHOLDER);
      const all = long === undefined ? marked : [...marked, 's'.repeat(long)];
      return prefix + all.join('/') + search;
    });
}

function publicPath(oddity: number): Arbitrary<string> {
  const usual = pick(['', '-a', '.b', '_~']).map((end) => PLACEHOLDER + end);
  const id = rarely(
    oddity,
    pick(ODD_SEGMENTS).map((segment) => segment + PLACEHOLDER),
    usual,
  );
  const end = maybe(oddity, pick(words('/ /x /content/ /content/.. %2fcontent ;x')));
  return fc
    .tuple(id, pick(['', '/content']), end, maybe(oddity, query(1)))
    .map(([id, content, [end = ''], [search = '']]) => `${PROXY}music/public/${id}${content}${end}${search}`);
}

function query(oddity: number): Arbitrary<string> {
  const usual = fc.nat(8).map((page) => `?q=${PLACEHOLDER}&page=${page}`);
  return rarely(
    oddity,
    pick(QUERIES).map((start) => start + PLACEHOLDER),
    usual,
  );
}
