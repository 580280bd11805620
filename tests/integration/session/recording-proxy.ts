/** Passes requests on to a real server, and keeps what it received and what came back. */

interface Exchange {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Headers;
  readonly body: string;
  readonly status: number;
  readonly responseBody: string;
}

export type RecordingProxy = ReturnType<typeof startRecordingProxy>;

export function startRecordingProxy(to: string) {
  const exchanges: Exchange[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      const body = await request.text();
      const forwarded = new Headers(headers);
      forwarded.delete('host');
      const response = await fetch(to + pathname + search, {
        method,
        headers: forwarded,
        redirect: 'manual',
        ...(body && { body }),
      });
      const responseBody = await response.text();
      const target = pathname + search;
      exchanges.push({ method, target, headers, body, status: response.status, responseBody });
      const contentType = response.headers.get('content-type');
      return new Response(responseBody, {
        status: response.status,
        headers: contentType === null ? {} : { 'content-type': contentType },
      });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    exchanges,
    [Symbol.dispose]: () => void server.stop(true),
  };
}
