/** The work list: what is asked of the contenders, one row each. */

import {
  ACCESS_COOKIE,
  EXPIRED_TOKEN,
  FOREIGN_ORIGIN,
  ORIGIN,
  PROXY_PREFIX,
  REFRESH_COOKIE,
  SIGNED_IN,
} from './mapping.ts';
import { BODY_SIZES, MODELS_BYTES, TRACK_BYTES } from './upstream.ts';

export interface Work {
  readonly id: string;
  readonly title: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly connections: number;
  readonly status: number;
  /** What of the upstream must arrive, byte for byte; undefined: the contender answers itself. */
  readonly upstreamPath?: string;
  readonly bodyBytes: number;
  /** Its cost is counted by the bytes that arrived: few complete in a spell, and those cut off at its end were worked for. */
  readonly countedByBytes?: true;
  /** Lua that makes the headers of each request; `count` and `salt` differ each time. */
  readonly eachRequest?: string;
  /** Only these contenders can do it, or are of interest; all unless given. */
  readonly contenders?: readonly string[];
}

const CONNECTIONS = 64;
const TRACK_CONNECTIONS = 16;
const RANGE_BYTES = 64 * 1024;
const FEW = ['gateway', 'floor', 'nginx'];

const base = {
  method: 'GET',
  headers: { origin: ORIGIN, cookie: SIGNED_IN, accept: 'application/json' },
  connections: CONNECTIONS,
  status: 200,
} as const;

function models(connections: number): Work {
  return {
    ...base,
    id: `models-${connections}`,
    title: `models, ${connections} connections`,
    path: '/api/music/models',
    upstreamPath: '/v1/models',
    bodyBytes: MODELS_BYTES,
    connections,
  };
}

function proxied(name: string, bytes: number): Work {
  return {
    ...base,
    id: `proxy-${name}`,
    title: `proxied, ${name === '0' ? 'empty' : name.toUpperCase().replace(/([KM])$/, ' $1B')}`,
    path: `${PROXY_PREFIX}/v1/files/${name}.bin`,
    upstreamPath: `/v1/files/${name}.bin`,
    bodyBytes: bytes,
    contenders: FEW,
  };
}

/** What is asked of every contender. */
export const COMMON_WORK: readonly Work[] = [
  { ...models(CONNECTIONS), id: 'models', title: 'models' },
  {
    ...base,
    id: 'session',
    title: 'session check',
    path: '/api/auth/session',
    upstreamPath: '/v1/me',
    bodyBytes: 300,
  },
  {
    ...base,
    id: 'proxy',
    title: 'proxied, 1.8 KB',
    path: `${PROXY_PREFIX}/v1/models`,
    upstreamPath: '/v1/models',
    bodyBytes: MODELS_BYTES,
  },
  {
    ...base,
    id: 'range',
    title: '64 KB range',
    path: `${PROXY_PREFIX}/v1/files/track.mp3`,
    headers: { ...base.headers, range: `bytes=1000000-${1_000_000 + RANGE_BYTES - 1}` },
    status: 206,
    upstreamPath: '/v1/files/track.mp3',
    bodyBytes: RANGE_BYTES,
  },
  {
    ...base,
    id: 'generate',
    title: 'generate, 10 MB',
    method: 'POST',
    path: '/api/music/generate',
    headers: { ...base.headers, 'content-type': 'application/json', 'idempotency-key': 'attempt-1' },
    body: JSON.stringify({ model: 'composer-1', prompt: 'a calm evening', music_length_ms: 30_000 }),
    upstreamPath: '/v1/music',
    bodyBytes: TRACK_BYTES,
    countedByBytes: true,
    connections: TRACK_CONNECTIONS,
  },
  {
    ...base,
    id: 'stream',
    title: 'proxied, 10 MB',
    path: `${PROXY_PREFIX}/v1/files/track.mp3`,
    upstreamPath: '/v1/files/track.mp3',
    bodyBytes: TRACK_BYTES,
    countedByBytes: true,
    connections: TRACK_CONNECTIONS,
  },
];

/** How cost grows with the body, and with the connections. */
export const SIZE_WORK: readonly Work[] = Object.entries(BODY_SIZES).map(([name, bytes]) =>
  proxied(name, bytes),
);
export const CONNECTION_WORK: readonly Work[] = [1, 64, 512].map((connections) => ({
  ...models(connections),
  contenders: FEW,
}));

/** What a proxy alone does not do. */
export const GATEWAY_WORK: readonly Work[] = [
  {
    ...base,
    id: 'refused-origin',
    title: 'refused origin',
    path: '/api/music/models',
    headers: { ...base.headers, origin: FOREIGN_ORIGIN },
    status: 403,
    bodyBytes: 0,
    contenders: FEW,
  },
  {
    ...base,
    id: 'sign-in',
    title: 'sign-in',
    method: 'POST',
    path: '/api/auth/idp',
    headers: { origin: ORIGIN, 'content-type': 'application/json' },
    body: JSON.stringify({ code: 'code-1', code_verifier: 'v'.repeat(43) }),
    bodyBytes: 0,
    contenders: ['gateway'],
  },
  {
    ...base,
    id: 'refresh',
    title: 'refresh and retry',
    path: '/api/music/models',
    headers: { ...base.headers, cookie: `${ACCESS_COOKIE}=${EXPIRED_TOKEN}; ${REFRESH_COOKIE}=refresh-0` },
    upstreamPath: '/v1/models',
    bodyBytes: MODELS_BYTES,
    // A refresh token that came before would be answered from memory.
    eachRequest: `headers.cookie = "${ACCESS_COOKIE}=${EXPIRED_TOKEN}; ${REFRESH_COOKIE}=refresh-" .. salt .. "-" .. count`,
    contenders: ['gateway'],
  },
];
