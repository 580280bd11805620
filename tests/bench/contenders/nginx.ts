/** nginx with the same mapping, in one process: what a proxy in C costs. */

import { writeFile } from 'node:fs/promises';
import type { Contender, Place } from '../contender.ts';
import {
  ACCESS_COOKIE,
  EXPOSED_HEADERS,
  HIDDEN_HEADERS,
  ORIGIN,
  PATHS,
  PROXY_PREFIX,
  READ_TIMEOUT_MS,
  REQUEST_HEADERS,
  STREAM_TIMEOUT_MS,
} from '../mapping.ts';

export const nginx: Contender = {
  id: 'nginx',
  title: 'nginx',
  needs: ['nginx'],
  parts: ['nginx'],
  async launch(place) {
    const path = `${place.folder}/nginx.conf`;
    await writeFile(path, configuration(place));
    return { command: ['nginx', '-p', place.folder, '-c', path, '-e', 'stderr'] };
  },
};

function configuration({ folder, port, upstreamPort }: Place): string {
  const seconds = (path: string) => (path === '/v1/music' ? STREAM_TIMEOUT_MS : READ_TIMEOUT_MS) / 1000;
  const locations = Object.entries(PATHS).map(
    ([path, target]) =>
      `location = ${path} { proxy_read_timeout ${seconds(target)}s; proxy_pass http://upstream${target}; }`,
  );
  const passed = REQUEST_HEADERS.map(
    (name) => `proxy_set_header ${name} $http_${name.replaceAll('-', '_')};`,
  );
  const hidden = HIDDEN_HEADERS.map((name) => `proxy_hide_header ${name};`);
  return `
daemon off;
master_process off;
worker_processes 1;
worker_rlimit_nofile 16384;
pid ${folder}/nginx.pid;
error_log stderr crit;
events { worker_connections 8192; }
http {
  access_log off;
  server_tokens off;
  tcp_nodelay on;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  upstream upstream {
    server 127.0.0.1:${upstreamPort};
    keepalive 600;
    keepalive_requests 1000000000;
    keepalive_time 1h;
  }
  map $http_origin $allowed_origin { default ""; "${ORIGIN}" $http_origin; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    add_header Access-Control-Allow-Origin $allowed_origin always;
    add_header Access-Control-Allow-Credentials true always;
    add_header Access-Control-Expose-Headers "${EXPOSED_HEADERS.join(', ')}" always;
    add_header Vary Origin always;
    add_header X-Content-Type-Options nosniff always;
    if ($allowed_origin = "") { return 403; }
    if ($cookie_${ACCESS_COOKIE} = "") { return 401; }
    client_max_body_size 2m;
    proxy_http_version 1.1;
    proxy_buffering off;
    # What is read and sent at once when nothing is buffered.
    proxy_buffer_size 64k;
    proxy_buffers 4 64k;
    proxy_read_timeout ${STREAM_TIMEOUT_MS / 1000}s;
    proxy_pass_request_headers off;
    proxy_set_header Connection "";
    proxy_set_header Authorization "Bearer $cookie_${ACCESS_COOKIE}";
    ${passed.join('\n    ')}
    ${hidden.join('\n    ')}
    ${locations.join('\n    ')}
    location ${PROXY_PREFIX}/v1/ { proxy_pass http://upstream/v1/; }
    location / { return 404; }
  }
}
`;
}
