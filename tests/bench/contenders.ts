/** The contenders, in the order of the tables, and how each is started in front of the upstream. */

import mapping from './mapping.json' with { type: 'json' };
import type { Program } from './processes.ts';

export interface Contender extends Program {
  readonly id: string;
  readonly title: string;
  /** Whether it needs the packages of this folder. */
  readonly needsPackages?: true;
}

const BUN = process.execPath;
const ENVIRONMENT = {
  NODE_ENV: 'production',
  BUN_CONFIG_MAX_HTTP_REQUESTS: '20000',
  PORT: '{{port}}',
  UPSTREAM_URL: 'http://{{upstream}}',
};

function script(id: string, title: string, program: string, file: string): Contender {
  return { id, title, program, args: [new URL(file, import.meta.url).pathname], env: ENVIRONMENT };
}

export const CONTENDERS: readonly Contender[] = [
  {
    ...script('gateway', 'this gateway', BUN, '../../src/index.ts'),
    env: {
      ...ENVIRONMENT,
      HOST: '127.0.0.1',
      IDP_URL: 'http://{{upstream}}',
      IDP_CLIENT_ID: 'studio',
      IDP_REDIRECT_URI: '{{origin}}/callback',
      ALLOWED_ORIGINS: '{{origin}}',
      // All connections belong to one user here.
      MAX_IN_FLIGHT_PER_SESSION: '60000',
    },
  },
  script('floor', 'by hand: `Bun.serve` and `fetch`', BUN, 'contenders/floor.mjs'),
  script('elysia', 'Elysia alone', BUN, 'contenders/elysia.mjs'),
  { ...script('hono-bun', 'Hono proxy helper, Bun', BUN, 'contenders/hono.mjs'), needsPackages: true },
  { ...script('hono-node', 'Hono proxy helper, Node', 'node', 'contenders/hono.mjs'), needsPackages: true },
  {
    ...script('fastify', 'Fastify with @fastify/http-proxy, Node', 'node', 'contenders/fastify.mjs'),
    needsPackages: true,
  },
  {
    ...script('express', 'Express with http-proxy-middleware, Node', 'node', 'contenders/express.mjs'),
    needsPackages: true,
  },
  {
    id: 'caddy',
    title: 'Caddy',
    program: 'caddy',
    args: ['run', '--config', '{{folder}}/configuration', '--adapter', 'caddyfile'],
    env: { GOMAXPROCS: '1', XDG_DATA_HOME: '{{folder}}', XDG_CONFIG_HOME: '{{folder}}' },
    template: 'contenders/Caddyfile',
  },
  {
    id: 'haproxy',
    title: 'HAProxy',
    program: 'haproxy',
    args: ['-db', '-f', '{{folder}}/configuration'],
    template: 'contenders/haproxy.cfg',
    values: {
      requestHeaderNames: mapping.requestHeaders.join('|'),
      responseHeaderNames: mapping.responseHeaders.join('|'),
    },
  },
  {
    id: 'nginx',
    title: 'nginx',
    program: 'nginx',
    args: ['-p', '{{folder}}', '-c', '{{folder}}/configuration', '-e', 'stderr'],
    template: 'contenders/nginx.conf',
    values: {
      requestHeaderLines: mapping.requestHeaders
        .map((name) => `proxy_set_header ${name} $http_${name.replaceAll('-', '_')};`)
        .join('\n    '),
    },
  },
];
