/** HAProxy with the same mapping, on one thread. */

import { writeFile } from 'node:fs/promises';
import type { Contender, Place } from '../contender.ts';
import {
  ACCESS_COOKIE,
  EXPOSED_HEADERS,
  ORIGIN,
  PATHS,
  PROXY_PREFIX,
  REQUEST_HEADERS,
  RESPONSE_HEADERS,
  STREAM_TIMEOUT_MS,
} from '../mapping.ts';

export const haproxy: Contender = {
  id: 'haproxy',
  title: 'HAProxy',
  needs: ['haproxy'],
  parts: ['haproxy'],
  async launch(place) {
    const path = `${place.folder}/haproxy.cfg`;
    await writeFile(path, configuration(place));
    return { command: ['haproxy', '-db', '-f', path] };
  },
};

/** A negative list for `del-header`: all but these are taken out. */
function allBut(names: readonly string[]): string {
  return `'^(?i)(?!(${names.join('|')})$)' -m reg`;
}

function configuration({ port, upstreamPort }: Place): string {
  const passed = [...REQUEST_HEADERS, 'host', 'content-length', 'transfer-encoding'];
  const shown = [...RESPONSE_HEADERS, 'date', 'transfer-encoding'];
  const paths = Object.entries(PATHS).map(
    ([path, target]) => `http-request set-path ${target} if { path ${path} }`,
  );
  const cors = [
    `access-control-allow-origin ${ORIGIN}`,
    'access-control-allow-credentials true',
    `access-control-expose-headers "${EXPOSED_HEADERS.join(', ')}"`,
    'vary Origin',
    'x-content-type-options nosniff',
  ];
  return `
global
  nbthread 1
  maxconn 4000
defaults
  mode http
  timeout connect 5s
  timeout client 1h
  timeout http-keep-alive 1h
  timeout server ${STREAM_TIMEOUT_MS}ms
  http-reuse always
  option splice-auto
frontend browsers
  bind 127.0.0.1:${port} backlog 4096
  http-request return status 403 hdr vary Origin hdr x-content-type-options nosniff if !{ req.hdr(origin) -m str ${ORIGIN} }
  http-request set-var(txn.token) req.cook(${ACCESS_COOKIE})
  http-request return status 401 if !{ var(txn.token) -m found }
  http-request return status 404 if !{ path ${Object.keys(PATHS).join(' ')} } !{ path_beg ${PROXY_PREFIX}/v1/ }
  ${paths.join('\n  ')}
  http-request set-path %[path,regsub(^${PROXY_PREFIX},)] if { path_beg ${PROXY_PREFIX}/v1/ }
  http-request del-header ${allBut(passed)}
  http-request set-header authorization "Bearer %[var(txn.token)]"
  http-response del-header ${allBut(shown)}
  ${cors.map((header) => `http-response set-header ${header}`).join('\n  ')}
  default_backend music
backend music
  server upstream 127.0.0.1:${upstreamPort} pool-max-conn 1000
`;
}
