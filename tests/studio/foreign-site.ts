/** A site other than the Studio: an empty page for a test's scripts, which records the cookies of each request. */

export interface ForeignSite extends AsyncDisposable {
  readonly origin: string;
  /** The names of the cookies that arrived with a request, by path. */
  readonly cookies: ReadonlyMap<string, readonly string[]>;
}

/**
 * `localhost` is the Studio's own site, whose cookies this server receives; `127.0.0.1` is another site. Browsers find
 * names below `localhost` on this machine, so `a.music.localhost` and `b.music.localhost` are hosts of one site.
 */
export function openForeignSite(hostname: string): ForeignSite {
  const cookies = new Map<string, readonly string[]>();
  const server = Bun.serve({
    port: 0,
    hostname: hostname.endsWith('.localhost') ? '127.0.0.1' : hostname,
    fetch(request) {
      const jar = new Bun.CookieMap(request.headers.get('cookie') ?? '');
      cookies.set(new URL(request.url).pathname, [...jar.keys()].sort());
      return new Response('<!doctype html><title>Elsewhere</title><link rel="icon" href="data:,">', {
        headers: { 'content-type': 'text/html', 'access-control-allow-origin': '*' },
      });
    },
  });
  return {
    origin: `http://${hostname}:${server.port}`,
    cookies,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}
