/** The contenders, in the order of the tables, and how each is started in front of the upstream. */

import { basename, resolve } from 'node:path';
import { CERTIFICATE } from '../support/certificate.ts';
import type { Check } from './check.ts';
import mapping from './mapping.json' with { type: 'json' };
import { OTHER_CORE, type Program } from './processes.ts';

export interface Contender extends Program {
  readonly id: string;
  readonly title: string;
  /** What it does not do, so that it is not checked for it. The results say so. */
  readonly leavesOut?: readonly Check[];
}

const ENVIRONMENT = {
  NODE_ENV: 'production',
  BUN_CONFIG_MAX_HTTP_REQUESTS: '20000',
  HOST: '{{host}}',
  PORT: '{{port}}',
  UPSTREAM_URL: '{{upstreamUrl}}',
  NODE_EXTRA_CA_CERTS: CERTIFICATE,
};

export const NGINX = {
  program: 'nginx',
  args: ['-p', '{{folder}}', '-c', '{{folder}}/configuration', '-e', 'stderr'],
};

const NGINX_LINES = mapping.requestHeaders.map(
  (name) => `proxy_set_header ${name} $http_${name.replaceAll('-', '_')};`,
);

function script(id: string, title: string, program: string, file: string): Contender {
  const args = [new URL(file, import.meta.url).pathname];
  return {
    id,
    title,
    program,
    args,
    env: { ...ENVIRONMENT, ACCESS_LOG: '{{log}}' },
    log: { off: '', on: 'on' },
  };
}

const GATEWAY: Contender = {
  ...script('gateway', 'this gateway', process.execPath, '../../src/index.ts'),
  env: {
    ...ENVIRONMENT,
    IDP_URL: '{{upstreamUrl}}',
    IDP_CLIENT_ID: 'studio',
    IDP_REDIRECT_URI: '{{origin}}/callback',
    ALLOWED_ORIGINS: '{{origin}}',
    // All connections belong to one user here.
    MAX_IN_FLIGHT_PER_SESSION: '60000',
    MAX_GENERATIONS_PER_SESSION: '0',
    LOG_LEVEL: '{{log}}',
  },
  log: { off: 'warn', on: 'info' },
};

/** Another checkout of the gateway. It has the same id, because it takes part wherever the gateway does. */
export function gatewayIn(folder: string): Contender {
  const title = `the gateway in ${basename(resolve(folder))}`;
  return { ...GATEWAY, title, args: [resolve(folder, 'src/index.ts')] };
}

export const CONTENDERS: readonly Contender[] = [
  GATEWAY,
  {
    ...script('bare', 'bare: `Bun.serve` returns `fetch`', process.execPath, 'contenders/bare.mjs'),
    leavesOut: ['headers', 'origin'],
  },
  script('floor', 'by hand: `Bun.serve` and `fetch`', process.execPath, 'contenders/floor.mjs'),
  script('elysia', 'Elysia alone', process.execPath, 'contenders/elysia.mjs'),
  script('hono-bun', 'Hono proxy helper, Bun', process.execPath, 'contenders/hono.mjs'),
  script('hono-node', 'Hono proxy helper, Node', 'node', 'contenders/hono.mjs'),
  script('fastify', 'Fastify with @fastify/http-proxy, Node', 'node', 'contenders/fastify.mjs'),
  script('express', 'Express with http-proxy-middleware, Node', 'node', 'contenders/express.mjs'),
  {
    id: 'caddy',
    title: 'Caddy',
    program: 'caddy',
    args: ['run', '--config', '{{folder}}/configuration', '--adapter', 'caddyfile'],
    env: { GOMAXPROCS: '1', XDG_DATA_HOME: '{{folder}}', XDG_CONFIG_HOME: '{{folder}}' },
    template: 'contenders/Caddyfile',
    log: { off: '', on: 'log {\n    output stdout\n  }\n  request_header X-Request-Id {http.request.uuid}' },
  },
  {
    id: 'haproxy',
    title: 'HAProxy',
    program: 'haproxy',
    args: ['-db', '-f', '{{folder}}/configuration'],
    template: 'contenders/haproxy.cfg',
    log: { off: 'no log', on: 'log global' },
    values: {
      requestHeaderNames: mapping.requestHeaders.join('|'),
      responseHeaderNames: mapping.responseHeaders.join('|'),
    },
  },
  {
    id: 'nginx',
    title: 'nginx',
    // nginx opens its log by name, which works with a pipe but not with the socket that Bun gives it.
    program: 'bash',
    args: ['-c', `exec nginx ${NGINX.args.join(' ')} > >(taskset -c ${OTHER_CORE} cat)`],
    template: 'contenders/nginx.conf',
    log: { off: 'off', on: '/dev/stdout facts' },
    values: { requestHeaderLines: NGINX_LINES.join('\n    ') },
  },
];
