/** The upstream: an nginx that answers from files, and only to who sends what a gateway should, and no more. */

import { mkdir, writeFile } from 'node:fs/promises';
import { ACCESS_TOKEN } from './mapping.ts';
import { REST_CORE, type Running, startPinned } from './running.ts';

export const TRACK_BYTES = 10 * 1000 * 1000;
export const MODELS_BYTES = 1843;
export const BODY_SIZES: Readonly<Record<string, number>> = {
  '0': 0,
  '2k': 2 * 1024,
  '16k': 16 * 1024,
  '64k': 64 * 1024,
  '256k': 256 * 1024,
  '1m': 1024 * 1024,
};

export interface Upstream extends Running {
  readonly port: number;
}

export async function startUpstream(folder: string, port: number): Promise<Upstream> {
  await mkdir(`${folder}/files`, { recursive: true });
  await writeFile(`${folder}/files/models.json`, json({ data: [] }, MODELS_BYTES));
  await writeFile(`${folder}/files/me.json`, json({ data: { id: 'user-1', name: 'Asha' } }, 300));
  await writeFile(`${folder}/files/track.mp3`, noise(TRACK_BYTES));
  for (const [name, bytes] of Object.entries(BODY_SIZES)) {
    await writeFile(`${folder}/files/${name}.bin`, noise(bytes));
  }
  await writeFile(`${folder}/nginx.conf`, configuration(folder, port));
  const running = await startPinned({
    command: ['nginx', '-p', folder, '-c', `${folder}/nginx.conf`, '-e', 'stderr'],
    core: REST_CORE,
    url: `http://127.0.0.1:${port}`,
  });
  return { ...running, port };
}

/** Padded to so many bytes. */
function json(value: Readonly<Record<string, unknown>>, bytes: number): string {
  const without = JSON.stringify({ ...value, description: '' }).length;
  return JSON.stringify({ ...value, description: 'x'.repeat(bytes - without) });
}

/** Bytes that are the same in every run and that nothing can compress. */
function noise(bytes: number): Uint8Array {
  const content = new Uint32Array(Math.ceil(bytes / 4));
  let state = 2463534242;
  for (let index = 0; index < content.length; index++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    content[index] = state;
  }
  return new Uint8Array(content.buffer, 0, bytes);
}

function configuration(folder: string, port: number): string {
  const pair = `"access_token":"${ACCESS_TOKEN}","refresh_token":"next-$request_id","expires_in":900`;
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
  sendfile on;
  tcp_nopush on;
  tcp_nodelay on;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  open_file_cache max=100 inactive=1h;
  open_file_cache_valid 1h;
  default_type application/octet-stream;
  types { application/json json; audio/mpeg mp3; }
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  map_hash_bucket_size 1024;
  map $uri $is_open { default ""; "~^/v1/auth/" open; /oauth/token open; }
  map "$is_open$http_authorization" $token_is_bad { default 1; open 0; "Bearer ${ACCESS_TOKEN}" 0; }
  # A browser's cookies and origin are none of the upstream's business.
  map "$http_cookie$http_origin" $too_much { default 1; "" 0; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    add_header X-Internal "rack 7" always;
    add_header Set-Cookie "upstream=1" always;
    if ($token_is_bad) { return 401; }
    if ($too_much) { return 400; }
    location / { return 404; }
    location = /v1/models { default_type application/json; alias ${folder}/files/models.json; }
    location = /v1/me { default_type application/json; alias ${folder}/files/me.json; }
    location /v1/files/ { alias ${folder}/files/; }
    location = /v1/music {
      if ($request_method != POST) { return 404; }
      error_page 405 =200 /track.mp3;
      return 405;
    }
    location = /track.mp3 {
      internal;
      root ${folder}/files;
      add_header X-Internal "rack 7" always;
      add_header Set-Cookie "upstream=1" always;
      add_header X-Generation-Id "generation-1";
      add_header X-Music-Creation-Id "creation-1";
    }
    location = /v1/auth/refresh { default_type application/json; return 200 '{${pair}}'; }
    location = /v1/auth/idp { default_type application/json; return 200 '{${pair}}'; }
    location = /oauth/token { default_type application/json; return 200 '{"access_token":"identity-1","token_type":"Bearer"}'; }
  }
}
`;
}
