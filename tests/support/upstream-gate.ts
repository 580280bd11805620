/** Stands between the gateway and the sandbox's upstream: remembers what arrives, and lets a test hold or replace answers. */

export interface UpstreamGate extends AsyncDisposable {
  readonly port: number;
  /** What has arrived, such as `GET /v1/me`, without the query. */
  readonly calls: readonly string[];
  /** The Idempotency-Keys of the generations that have arrived, in their order. */
  readonly idempotencyKeys: readonly (string | null)[];
  /** Answers a call instead of the sandbox, until it is given back. */
  replace(call: string, answer: () => Response | Promise<Response>): { giveBack(): void };
  /** Lets so much of each generation's audio through and keeps the rest back until it is released. */
  holdAudio(afterBytes: number): { release(): void };
}

export function openUpstreamGate(upstreamUrl: string): UpstreamGate {
  const calls: string[] = [];
  const idempotencyKeys: (string | null)[] = [];
  const answers = new Map<string, () => Response | Promise<Response>>();
  let hold: { afterBytes: number; released: Promise<void> } | undefined;

  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const call = `${request.method} ${pathname}`;
      const isGeneration = call === 'POST /v1/music';
      calls.push(call);
      if (isGeneration) idempotencyKeys.push(request.headers.get('idempotency-key'));
      const replaced = answers.get(call);
      if (replaced) return replaced();
      const { method, headers, signal } = request;
      const body = method === 'GET' || method === 'HEAD' ? null : await request.text();
      const answer = await fetch(upstreamUrl + pathname + search, {
        method,
        headers,
        body,
        signal,
        redirect: 'manual',
      });
      if (!isGeneration || !answer.ok || !answer.body || !hold) return answer;
      return new Response(answer.body.pipeThrough(held(hold)), answer);
    },
  });

  return {
    port: server.port ?? 0,
    calls,
    idempotencyKeys,
    replace(call, answer) {
      answers.set(call, answer);
      return { giveBack: () => void answers.delete(call) };
    },
    holdAudio(afterBytes) {
      const { promise, resolve } = Promise.withResolvers<void>();
      hold = { afterBytes, released: promise };
      return {
        release() {
          hold = undefined;
          resolve();
        },
      };
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

function held({ afterBytes, released }: { afterBytes: number; released: Promise<void> }) {
  let left = afterBytes;
  return new TransformStream<Uint8Array, Uint8Array>({
    async transform(chunk, controller) {
      const first = chunk.subarray(0, left);
      left -= first.length;
      if (first.length) controller.enqueue(first);
      if (first.length === chunk.length) return;
      await released;
      controller.enqueue(chunk.subarray(first.length));
      left = Number.POSITIVE_INFINITY;
    },
  });
}
