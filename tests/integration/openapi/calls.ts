/** For each operation of the document a request that succeeds, and what it makes the gateway ask for. */

import type { RequestOptions } from '../../support/world.ts';

export interface Call {
  readonly operation: string;
  readonly path: string;
  readonly options?: RequestOptions;
  /** The call to the upstream whose answer decides this one; none for what the gateway answers by itself. */
  readonly upstream?: string;
  /** The keys of its documented answers. */
  readonly statuses: readonly string[];
  readonly hasSession?: boolean;
  readonly hasBody?: boolean;
  /** Passes on whatever the upstream answers. */
  readonly relays?: boolean;
}

export const TRACK = { model: 'm', prompt: 'p', music_length_ms: 3000 };
export const GRANT = { code: 'c', code_verifier: 'v'.repeat(43) };

const RELAYED_WHOLE = ['200', '400', '401', '403', '429', '502', '503', 'default'];
const PROXIED = ['2XX', '400', '401', '403', '404', '429', '502', '503', 'default'];
const session = { hasSession: true } as const;

function get(path: string, call: Omit<Call, 'operation' | 'path'>): Call[] {
  return ['GET', 'HEAD'].map((method) => ({
    ...call,
    operation: `${method} ${path}`,
    path,
    options: { method },
  }));
}

function proxied(method: string, statuses: readonly string[]): Call {
  const hasBody = statuses.includes('413');
  return {
    operation: `${method} /api/upstream/v1/{rest}`,
    path: '/api/upstream/v1/library/1',
    options: { method, ...(hasBody ? { body: '{}' } : {}) },
    upstream: `${method} /v1/library/1`,
    statuses,
    hasBody,
    relays: true,
    ...session,
  };
}

function playback(rest: string): Call {
  return {
    operation: `GET /api/upstream/v1/music/public/{creation_id}${rest}`,
    path: `/api/upstream/v1/music/public/abc${rest}`,
    upstream: `GET /v1/music/public/abc${rest}`,
    statuses: PROXIED,
    relays: true,
  };
}

export const CALLS: readonly Call[] = [
  ...get('/api/health', { statuses: ['200'] }),
  {
    operation: 'POST /api/auth/idp',
    path: '/api/auth/idp',
    options: { json: GRANT },
    upstream: 'POST /v1/auth/idp',
    statuses: ['200', '400', '401', '403', '408', '413', '502', '503', 'default'],
    hasBody: true,
  },
  ...get('/api/auth/session', { upstream: 'GET /v1/me', statuses: RELAYED_WHOLE, relays: true, ...session }),
  {
    operation: 'POST /api/auth/logout',
    path: '/api/auth/logout',
    options: { method: 'POST' },
    upstream: 'POST /v1/auth/logout',
    statuses: ['200', '400', '403'],
  },
  ...get('/api/music/models', {
    upstream: 'GET /v1/models',
    statuses: RELAYED_WHOLE,
    relays: true,
    ...session,
  }),
  {
    operation: 'POST /api/music/generate',
    path: '/api/music/generate',
    options: { json: TRACK },
    upstream: 'POST /v1/music',
    statuses: ['200', '400', '401', '403', '408', '413', '429', '502', '503', 'default'],
    hasBody: true,
    ...session,
  },
  playback(''),
  playback('/content'),
  proxied('GET', PROXIED),
  proxied('HEAD', PROXIED),
  ...['POST', 'PUT', 'PATCH', 'DELETE'].map((method) => proxied(method, [...PROXIED, '408', '413'])),
];
