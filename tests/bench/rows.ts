/** What is asked of the contenders, one row each. A path that is new here needs its place in `upstream.conf`. */

import mapping from './mapping.json' with { type: 'json' };
import { ACCESS_TOKEN, BODIES, TRACK_BYTES } from './upstream.ts';

export interface Row {
  readonly id: string;
  readonly title: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Empty for a GET; with a body it is a POST. */
  readonly body: string;
  readonly connections: number;
  /** Whether each connection waits for about a second between its requests. */
  readonly pauses?: true;
  readonly status: number;
  /** How long a round lasts; 0.5 unless given. */
  readonly seconds?: number;
  /** Given where the cost is counted by bytes: few responses this large end within a round. */
  readonly trackBytes?: number;
  /** Whether each request brings an expired access token and a refresh token of its own. */
  readonly needsRefresh?: true;
  /** Whether a response may be a refusal for lack of places: it is not counted as a request then. */
  readonly mayRefuse?: true;
  /** What the contenders' processes have for it that others have not: an access log, or an upstream over HTTPS. */
  readonly setup?: 'log' | 'tls';
  /** Ids; all unless given. */
  readonly contenders?: readonly string[];
}

export const FOREIGN_ORIGIN = 'https://elsewhere.example';
export const EXPIRED_COOKIES = cookies(ACCESS_TOKEN.replace('fresh', 'expired'));
const FEW = ['gateway', 'bare', 'nginx'];
const LIVE = `${mapping.proxyPrefix}/v1/live/track.mp3`;
const TRACK = `${mapping.proxyPrefix}/v1/files/track.mp3`;

const get = {
  headers: { origin: mapping.origin, cookie: cookies(ACCESS_TOKEN), accept: 'application/json' },
  body: '',
  connections: 64,
  status: 200,
};
const PLAYER_HEADERS = { ...get.headers, range: 'bytes=0-' };
const json = { origin: mapping.origin, 'content-type': 'application/json' };
const track = { connections: 16, trackBytes: TRACK_BYTES };

export const MODELS_ROW: Row = { ...get, id: 'models', title: 'models', path: '/api/music/models' };
export const SESSION_ROW: Row = { ...get, id: 'session', title: 'session check', path: '/api/auth/session' };
export const GENERATE_ROW: Row = {
  ...get,
  ...track,
  id: 'generate',
  title: 'generate, 10 MB',
  path: '/api/music/generate',
  headers: { ...get.headers, ...json, 'idempotency-key': 'attempt-1' },
  body: JSON.stringify({ model: 'composer-1', prompt: 'a calm evening', music_length_ms: 30_000 }),
};

export const PROXY_ROW: Row = {
  ...get,
  id: 'proxy',
  title: 'proxied, 1.8 KB',
  path: `${mapping.proxyPrefix}/v1/models`,
};
export const STREAM_ROW: Row = { ...get, ...track, id: 'stream', title: 'proxied, 10 MB', path: TRACK };

export const SEEK_BYTES = 48 * 1024;
export const SEEK_ROW = range('range', '48 KB', SEEK_BYTES);

/** As players ask for a track. */
export const PLAYED_ROW: Row = {
  ...get,
  ...track,
  id: 'played',
  title: 'played, 10 MB',
  path: TRACK,
  headers: PLAYER_HEADERS,
  status: 206,
};

/** For every contender. */
const COMMON_ROWS: readonly Row[] = [
  MODELS_ROW,
  SESSION_ROW,
  PROXY_ROW,
  SEEK_ROW,
  GENERATE_ROW,
  STREAM_ROW,
  { ...range('range-1m', '1 MB', 1_000_000), connections: 16 },
  PLAYED_ROW,
];

/** Also for every contender. */
const LOG_ROWS: readonly Row[] = [MODELS_ROW, SEEK_ROW].map((row) => ({
  ...row,
  id: `${row.id}-log`,
  title: `${row.title}, with an access log`,
  setup: 'log',
}));

const TLS_ROWS: readonly Row[] = [PROXY_ROW, STREAM_ROW].map((row) => ({
  ...row,
  id: `${row.id}-tls`,
  title: `${row.title}, upstream over HTTPS`,
  setup: 'tls',
  contenders: ['gateway', 'bare', 'floor', 'elysia', 'nginx'],
}));

export const TRACKS_ROW: Row = {
  ...get,
  id: 'tracks',
  title: '100 tracks of 6.5 MB',
  path: `${mapping.proxyPrefix}/v1/files/6500k.bin`,
  connections: 100,
  trackBytes: 6_500_000,
};

const BODY_ROWS: readonly Row[] = BODIES.map(({ size, file }) => ({
  ...get,
  id: `proxy-${file.replace('.bin', '')}`,
  title: `proxied, ${size}`,
  path: `${mapping.proxyPrefix}/v1/files/${file}`,
  contenders: FEW,
}));

const CONNECTION_ROWS: readonly Row[] = [
  modelsOn({ connections: 1 }),
  // The calls of the round before may still be in flight and take places.
  modelsOn({ connections: 512, mayRefuse: true }),
  {
    // So many take a second to connect.
    ...modelsOn({ connections: 4096, seconds: 3, mayRefuse: true }),
    id: 'models-pausing',
    title: 'models, 4096 connections, a request a second each',
    pauses: true,
  },
];

export const SIGN_IN_ROW: Row = {
  ...get,
  id: 'sign-in',
  title: 'sign-in',
  path: '/api/auth/idp',
  headers: json,
  body: JSON.stringify({ code: 'code-1', code_verifier: 'v'.repeat(43) }),
  contenders: ['gateway'],
};
export const REFRESH_ROW: Row = {
  ...MODELS_ROW,
  id: 'refresh',
  title: 'refresh and retry',
  headers: { ...get.headers, cookie: EXPIRED_COOKIES },
  needsRefresh: true,
  contenders: ['gateway'],
};

/** What a proxy alone does not do. */
const GATEWAY_ROWS: readonly Row[] = [
  {
    ...MODELS_ROW,
    id: 'refused-origin',
    title: 'refused origin',
    headers: { ...get.headers, origin: FOREIGN_ORIGIN },
    status: 403,
    contenders: ['gateway', 'floor', 'nginx'],
  },
  SIGN_IN_ROW,
  REFRESH_ROW,
];

export const ALL_ROWS: readonly Row[] = [
  ...COMMON_ROWS,
  ...LOG_ROWS,
  ...TLS_ROWS,
  ...BODY_ROWS,
  ...CONNECTION_ROWS,
  ...GATEWAY_ROWS,
];

/** The first seconds of streams as fast as uncompressed music plays: `upstream.conf` limits them. */
export function playing(connections: number): Row {
  return { ...get, ...track, id: 'live', title: `${connections}`, path: LIVE, connections };
}

/** They end with the refresh token, so that a row can append to it. */
export function cookies(accessToken: string): string {
  return `${mapping.accessCookie}=${accessToken}; ${mapping.refreshCookie}=refresh`;
}

function modelsOn(load: Pick<Row, 'connections' | 'seconds' | 'mayRefuse'>): Row {
  const { connections } = load;
  const title = `models, ${connections} connections`;
  return { ...MODELS_ROW, ...load, id: `models-${connections}`, title, contenders: FEW };
}

function range(id: string, size: string, bytes: number): Row {
  const headers = { ...get.headers, range: `bytes=1000000-${1_000_000 + bytes - 1}` };
  return { ...get, id, title: `${size} range`, path: TRACK, headers, status: 206 };
}
