/** The bare floor: `fetch` with the token and the path mapped. It has no deadline, checks nothing and relays every header. */

import { withAccessLog } from './access-log.mjs';
import { accessToken, HOST, PATHS, PORT, PROXY_PREFIX, UPSTREAM_URL } from './mapping.mjs';

function respond({ url, method, headers, body }) {
  const { pathname } = new URL(url);
  const path = PATHS[pathname] ?? pathname.slice(PROXY_PREFIX.length);
  const forwarded = { authorization: `Bearer ${accessToken(headers.get('cookie'))}` };
  const range = headers.get('range');
  if (range !== null) forwarded.range = range;
  return fetch(UPSTREAM_URL + path, { method, headers: forwarded, body });
}

Bun.serve({ hostname: HOST, port: PORT, idleTimeout: 255, fetch: withAccessLog(respond) });
