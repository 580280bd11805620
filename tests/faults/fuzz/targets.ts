/** Methods and request targets: the gateway's routes, and proxied paths that two servers may read differently. */

import fc, { type Arbitrary } from 'fast-check';
import {
  FORWARDED_PATHS,
  NEARLY_PUBLIC_PATHS,
  PUBLIC_PATHS,
  REFUSED_PATHS,
} from '../../support/proxied-paths.ts';
import { items, maybe, PLACEHOLDER, pick, rarely, words } from './choices.ts';

export interface Aim {
  readonly method: string;
  readonly target: string;
}

const METHODS = words('GET HEAD POST PUT PATCH DELETE');
const ODD_METHODS = [...words('OPTIONS TRACE CONNECT PROPFIND get GETT QUERY PRI M-SEARCH G\0T'), ''];
const ROUTES = items(`GET /api/auth/session | GET /api/music/models | POST /api/auth/idp | POST /api/auth/idp
  POST /api/auth/logout | POST /api/music/generate | POST /api/music/generate
  POST /api/music/generate | GET /api/health`);
const ODD_TARGETS = [
  ...words(
    '* / // ? /api /api/ /api/health/ /api/health? /api/health# /API/health /x/api/health //api/health',
  ),
  ...words('/api/auth/idp/ /api/auth/session? /api/auth//session /api/music/..;/auth/session'),
  ...words('/api/auth/session%00 /constructor /__proto__ /api/upstream/v1/me?/api/health /a://b/api/health'),
  ...words('/api/health?/api/auth/session api/health studio.test:443 /api/auth/session;x'),
  '',
];
const ABSOLUTE_HOSTS = [...words('gateway.test evil.test 127.0.0.1:1 a@b x/api/health? [::1] x#'), ''];

const PROXY = '/api/upstream';
const PREFIXES = words(
  `${PROXY} /api//upstream //api/upstream /API/upstream /api%2fupstream ${PROXY}\\ ${PROXY}@evil.test
  ${PROXY}.evil.test ${PROXY}:80 /api/health/../upstream /api/health%2f..%2fupstream /api/x/../upstream`,
);
/** A letter that becomes another one when a server folds it: full-width, bold, ordinal, superscript. */
const FOLDED_PATHS = words(
  '/v1/%f0%9d%90%9auth /v1/%c2%aauth/idp /v1/\xef\xbd\x81uth /v1/%E1%B5%83uth /v1/auth%e2%80%a4 /v1/au%cc%88th',
);
/** Each rule is as likely as any other, however many paths test it. */
const ODD_PATHS = fc.oneof(...[...Object.values(REFUSED_PATHS), FOLDED_PATHS].map(pick));
/** Appended to a path, so that what is odd also stands in the middle. */
const ENDS = [
  ...words('/ /x /. /.. /..;x /;x ;x %2f..%2fx %00 # ? ?a=b&a=c ?/../.. ?q=%20%zz ?\xff ?"<>'),
  '',
];

export function aim(oddity: number): Arbitrary<Aim> {
  const usual = fc.oneof(
    { weight: 55, arbitrary: routed(oddity) },
    { weight: 45, arbitrary: proxied(oddity) },
  );
  const absolute = fc
    .tuple(pick([...words('http https HTTP ftp file'), '']), pick(ABSOLUTE_HOSTS))
    .map(([scheme, host]) => `${scheme}://${host}`);
  return fc
    .tuple(usual, maybe(oddity, pick([...METHODS, ...ODD_METHODS])), maybe(oddity / 4, absolute))
    .map(([{ method, target }, [other], [start = '']]) => ({
      method: other ?? method,
      target: start + target,
    }));
}

function routed(oddity: number): Arbitrary<Aim> {
  const route = fc.tuple(pick(ROUTES), maybe(0.2, query())).map(([each, [search = '']]) => {
    const [method = '', path = ''] = each.split(' ');
    return { method, target: path + search };
  });
  const odd = fc.record({ method: pick(METHODS), target: pick(ODD_TARGETS) });
  return rarely(oddity / 4, odd, rarely(oddity / 2, besideHealth(), route));
}

/** Resembles the one path without an origin rule, in case only a part of it is compared. */
function besideHealth(): Arbitrary<Aim> {
  const path = pick(['', '', '', `${PROXY}/v1`, `${PROXY}/v1`, '/api/auth']);
  const hidden = pick(words('/api/auth/session /api/music/models /api/upstream/v1/me'));
  return fc
    .tuple(
      path,
      pick([PLACEHOLDER, 'x']),
      pick(words('? ? ?x ?/x/y/z')),
      rarely(0.2, fc.constant(PLACEHOLDER), hidden),
    )
    .map(([path, name, start, end]) => ({
      method: 'GET',
      target: `${path}/${name}/api/health${start}${end}`,
    }));
}

function proxied(oddity: number): Arbitrary<Aim> {
  const marked = pick(words(`/v1/${PLACEHOLDER} /v1/me/${PLACEHOLDER} /v1/music/creations/${PLACEHOLDER}`));
  const open = pick(words(`/v1/music/public/${PLACEHOLDER} /v1/music/public/${PLACEHOLDER}_~.a/content`));
  const listed = pick([...FORWARDED_PATHS, ...PUBLIC_PATHS, ...NEARLY_PUBLIC_PATHS]);
  const usual = fc.oneof(
    { weight: 5, arbitrary: marked },
    { weight: 3, arbitrary: open },
    { weight: 2, arbitrary: listed },
  );
  return fc
    .record({
      method: pick(['GET', 'GET', 'GET', ...METHODS]),
      prefix: rarely(oddity / 3, pick(PREFIXES), fc.constant(PROXY)),
      path: rarely(oddity, ODD_PATHS, usual),
      end: rarely(oddity / 2, pick(ENDS), fc.constant('')),
      long: maybe(
        oddity / 20,
        pick([300, 4000, 8000]).map((length) => `/${'s'.repeat(length)}`),
      ),
      search: maybe(0.4, query()),
    })
    .map(({ method, prefix, path, end, long, search }) => ({
      method,
      target: prefix + path + end + long.concat(search).join(''),
    }));
}

function query(): Arbitrary<string> {
  return fc.nat(8).map((page) => `?q=${PLACEHOLDER}&page=${page}`);
}
