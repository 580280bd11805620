/** A site other than the Studio: an empty page for a test's scripts. */

/**
 * `localhost` is the Studio's own site; `127.0.0.1` is another one. Browsers find names below `localhost` on this machine,
 * so `a.music.localhost` and `b.music.localhost` are hosts of one site.
 */
export function openForeignSite(hostname: string) {
  const html = '<!doctype html><title>Elsewhere</title><link rel="icon" href="data:,">';
  const server = Bun.serve({
    port: 0,
    hostname: hostname.endsWith('.localhost') ? '127.0.0.1' : hostname,
    fetch: () => new Response(html, { headers: { 'content-type': 'text/html' } }),
  });
  return {
    origin: `http://${hostname}:${server.port}`,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}
