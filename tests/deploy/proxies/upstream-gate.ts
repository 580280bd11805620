/** Stands between the gateway and the sandbox's upstream: remembers what arrives, and lets a test hold or replace responses. */

import { releasedBody } from '../../support/released-body.ts';

/** `forward` gets the sandbox's own response. */
type Respond = (forward: () => Promise<Response>) => Response | Promise<Response>;

export type UpstreamGate = ReturnType<typeof openUpstreamGate>;

const GENERATION = 'POST /v1/music';

export function openUpstreamGate(upstreamUrl: string) {
  const calls: string[] = [];
  const idempotencyKeys: (string | null)[] = [];
  const responses = new Map<string, Respond>();

  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { method, headers, signal } = request;
      const call = `${method} ${pathname}`;
      calls.push(call);
      if (call === GENERATION) idempotencyKeys.push(headers.get('idempotency-key'));
      const body = method === 'GET' || method === 'HEAD' ? null : await request.bytes();
      const forward = () =>
        fetch(upstreamUrl + pathname + search, { method, headers, body, signal, redirect: 'manual' });
      const respond = responses.get(call);
      return respond ? respond(forward) : forward();
    },
  });

  const replace = (call: string, respond: Respond) => {
    responses.set(call, respond);
    return { giveBack: () => void responses.delete(call) };
  };

  return {
    port: server.port ?? 0,
    /** What has arrived, such as `GET /v1/me`, without the query. */
    calls,
    /** The Idempotency-Keys of the generations that have arrived, in their order. */
    idempotencyKeys,
    /** Replaces the sandbox's response to a call, until it is given back. */
    replace,
    /** Keeps a call back, once it has arrived, until it is released. */
    hold(call: string) {
      const [arrived, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      replace(call, (forward) => {
        arrived.resolve();
        return released.promise.then(forward);
      });
      return { arrived: arrived.promise, release: released.resolve };
    },
    /** Lets so much of each generation's audio through, and keeps the rest back until it is released. */
    holdAudio(afterBytes: number) {
      const { promise, resolve } = Promise.withResolvers<void>();
      replace(GENERATION, async (forward) => {
        const response = await forward();
        const audio = await response.bytes();
        const { stream, release, end } = releasedBody();
        release(audio.subarray(0, afterBytes));
        void promise.then(() => release(audio.subarray(afterBytes))).then(end);
        return new Response(stream, response);
      });
      return { release: resolve };
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}
