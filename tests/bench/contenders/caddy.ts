/** Caddy with the same mapping, on one processor. */

import { writeFile } from 'node:fs/promises';
import type { Contender, Place } from '../contender.ts';
import {
  ACCESS_COOKIE,
  EXPOSED_HEADERS,
  HIDDEN_HEADERS,
  ORIGIN,
  PATHS,
  PROXY_PREFIX,
  STREAM_TIMEOUT_MS,
} from '../mapping.ts';

export const caddy: Contender = {
  id: 'caddy',
  title: 'Caddy',
  needs: ['caddy'],
  parts: ['caddy'],
  async launch(place) {
    const path = `${place.folder}/Caddyfile`;
    await writeFile(path, configuration(place));
    return {
      command: ['caddy', 'run', '--config', path, '--adapter', 'caddyfile'],
      env: { GOMAXPROCS: '1', XDG_DATA_HOME: place.folder, XDG_CONFIG_HOME: place.folder },
    };
  },
};

function configuration({ port, upstreamPort }: Place): string {
  const paths = Object.entries(PATHS).map(([path, target]) => `rewrite ${path} ${target}`);
  return `
{
  admin off
  auto_https off
  log default {
    level ERROR
  }
}
http://:${port} {
  bind 127.0.0.1
  header {
    Access-Control-Allow-Credentials true
    Access-Control-Expose-Headers "${EXPOSED_HEADERS.join(', ')}"
    Vary Origin
    X-Content-Type-Options nosniff
    defer
  }
  @allowed header Origin ${ORIGIN}
  header @allowed {
    Access-Control-Allow-Origin ${ORIGIN}
    defer
  }
  route {
    @foreign not header Origin ${ORIGIN}
    respond @foreign 403
    @stranger expression \`{http.request.cookie.${ACCESS_COOKIE}} == ""\`
    respond @stranger 401
    ${paths.join('\n    ')}
    uri strip_prefix ${PROXY_PREFIX}
    reverse_proxy 127.0.0.1:${upstreamPort} {
      flush_interval -1
      header_up Authorization "Bearer {http.request.cookie.${ACCESS_COOKIE}}"
      header_up -Cookie
      header_up -Origin
      header_up -X-Forwarded-*
      ${HIDDEN_HEADERS.map((name) => `header_down -${name}`).join('\n      ')}
      transport http {
        keepalive 1h
        keepalive_idle_conns_per_host 1000
        response_header_timeout ${STREAM_TIMEOUT_MS}ms
        compression off
      }
    }
  }
}
`;
}
