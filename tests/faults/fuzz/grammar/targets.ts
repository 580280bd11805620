/** Request targets: the gateway's routes, proxied paths with every escape, queries. */

import type { Random } from '../random.ts';
import {
  AUTH_PATHS,
  ODD_METHODS,
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

const ROUTES: readonly (readonly [string, string])[] = [
  ['POST', '/api/auth/idp'],
  ['POST', '/api/auth/idp'],
  ['GET', '/api/auth/session'],
  ['POST', '/api/auth/logout'],
  ['GET', '/api/music/models'],
  ['POST', '/api/music/generate'],
  ['POST', '/api/music/generate'],
  ['POST', '/api/music/generate'],
  ['GET', '/api/health'],
];
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
const PROXIED_METHODS = ['GET', 'GET', 'GET', ...METHODS];
const PLAIN_SEGMENTS = [
  'me',
  'music',
  'creations',
  'billing',
  'a%20b',
  'x.y',
  '~u',
  'a:b',
  'a@b',
  "(a)'!*",
  '%C3%A9',
];
const PREFIXES = [
  '/api/upstream/v1/',
  '/api/upstream/v1',
  '/api/upstream/',
  '/api/upstream',
  '/api/upstream/v2/',
  '/api/upstream//v1/',
];

export function aim(random: Random, marker: string, oddity: number): Aim {
  const [method, target] = random.chance(0.45)
    ? [random.pick(PROXIED_METHODS), proxied(random, marker, oddity)]
    : route(random, marker, oddity);
  const written = random.chance(oddity / 4) ? absolute(random, target) : target;
  return {
    method: random.chance(oddity) ? random.pick([...METHODS, ...ODD_METHODS]) : method,
    target: written,
  };
}

function route(random: Random, marker: string, oddity: number): readonly [string, string] {
  if (random.chance(oddity / 4)) return [random.pick(METHODS), random.pick(ODD_TARGETS)];
  if (random.chance(oddity / 2)) return ['GET', besideHealth(random, marker)];
  const [method, path] = random.pick(ROUTES);
  return [method, path + (random.chance(0.2) ? query(random, marker, oddity) : '')];
}

function proxied(random: Random, marker: string, oddity: number): string {
  if (random.chance(0.2)) return publicPath(random, marker, oddity);
  if (random.chance(oddity / 3)) return `/api/upstream/v1/${random.pick(AUTH_PATHS)}?${marker}`;
  const prefix = random.chance(oddity / 2)
    ? random.pick([...PREFIXES, ...ODD_PREFIXES])
    : '/api/upstream/v1/';
  const segments: string[] = [];
  for (let left = random.between(1, 4); left > 0; left--) {
    segments.push(
      random.chance(oddity)
        ? random.pick(random.chance(0.3) ? PARAMETER_SEGMENTS : ODD_SEGMENTS)
        : random.pick([...PLAIN_SEGMENTS, marker]),
    );
  }
  if (random.chance(0.5)) segments.splice(random.below(segments.length + 1), 0, marker);
  if (random.chance(oddity / 20)) segments.push('s'.repeat(random.pick([300, 4000, 8000])));
  return prefix + segments.join('/') + (random.chance(0.6) ? query(random, marker, oddity) : '');
}

/** Looks like the one path without an origin rule, in case somebody only looks at a part of it. */
function besideHealth(random: Random, marker: string): string {
  const path = random.pick(['/api/upstream/v1', '/api/upstream/v1', '/api/auth', '', '', '']);
  const hidden = random.pick(['/api/auth/session', '/api/music/models', '/api/upstream/v1/me']);
  const end = random.pick([`?${marker}`, `?${hidden}`, `?${hidden}`, `?x${hidden}`, `?/x/y/z${hidden}`]);
  return `${path}/${random.pick([marker, 'x'])}/api/health${end}`;
}

function publicPath(random: Random, marker: string, oddity: number): string {
  const id = random.chance(oddity)
    ? random.pick(ODD_SEGMENTS) + marker
    : `${marker}${random.pick(['', '-a', '.b', '_~'])}`;
  const end = random.chance(oddity)
    ? random.pick(['/', '/x', '/content/', '/content/..', '%2fcontent', ';x'])
    : '';
  const content = random.chance(0.5) ? '/content' : '';
  return `/api/upstream/v1/music/public/${id}${content}${end}${random.chance(oddity) ? query(random, marker, 1) : ''}`;
}

function query(random: Random, marker: string, oddity: number): string {
  return random.chance(oddity) ? random.pick(QUERIES) + marker : `?q=${marker}&page=${random.below(9)}`;
}

function absolute(random: Random, target: string): string {
  const host = random.pick([
    'gateway.test',
    'evil.test',
    '127.0.0.1:1',
    '',
    'a@b',
    'x/api/health?',
    '[::1]',
    'x#',
  ]);
  return `${random.pick(['http', 'https', 'HTTP', 'ftp', 'file', ''])}://${host}${target}`;
}
