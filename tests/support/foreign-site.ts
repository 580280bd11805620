/** A site that is not the studio: an empty page for a test's scripts, and a memory of the cookies that come with each call. */

export interface ForeignSite extends AsyncDisposable {
  readonly origin: string;
  /** The paths that were asked for, each with the names of the cookies that came along. */
  readonly cookies: ReadonlyMap<string, readonly string[]>;
}

/**
 * On `localhost` it is of the studio's own site, whose cookies it gets; on `127.0.0.1` it is not. Browsers find names
 * below `localhost` on this machine: `a.music.localhost` and `b.music.localhost` are hosts of one site.
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
