/** Stands between the gateway and the sandbox's upstream: remembers what arrives, and lets a test hold or replace answers. */

/** `forward` gets the sandbox's own answer. */
type Answer = (forward: () => Promise<Response>) => Response | Promise<Response>;

export interface UpstreamGate extends AsyncDisposable {
  readonly port: number;
  /** What has arrived, such as `GET /v1/me`, without the query. */
  readonly calls: readonly string[];
  /** The Idempotency-Keys of the generations that have arrived, in their order. */
  readonly idempotencyKeys: readonly (string | null)[];
  /** Resolves when a call has come so many times more. */
  arrive(call: string, times: number): Promise<void>;
  /** Answers a call in place of the sandbox, until it is given back. */
  replace(call: string, answer: Answer): { giveBack(): void };
  /** Lets so much of each generation's audio through, and keeps the rest back until it is released. */
  holdAudio(afterBytes: number): { release(): void };
}

const GENERATION = 'POST /v1/music';

export function openUpstreamGate(upstreamUrl: string): UpstreamGate {
  const calls: string[] = [];
  const idempotencyKeys: (string | null)[] = [];
  const arrivals = new EventTarget();
  const answers = new Map<string, Answer>();

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
      arrivals.dispatchEvent(new Event(call));
      const body = method === 'GET' || method === 'HEAD' ? null : await request.text();
      const forward = () =>
        fetch(upstreamUrl + pathname + search, { method, headers, body, signal, redirect: 'manual' });
      const answer = answers.get(call);
      return answer ? answer(forward) : forward();
    },
  });

  const replace: UpstreamGate['replace'] = (call, answer) => {
    answers.set(call, answer);
    return { giveBack: () => void answers.delete(call) };
  };

  return {
    port: server.port ?? 0,
    calls,
    idempotencyKeys,
    arrive(call, times) {
      const { promise, resolve } = Promise.withResolvers<void>();
      let left = times;
      arrivals.addEventListener(call, () => {
        left -= 1;
        if (left === 0) resolve();
      });
      return promise;
    },
    replace,
    holdAudio(afterBytes) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const generation = replace(GENERATION, async (forward) => {
        const answer = await forward();
        return new Response(answer.body?.pipeThrough(held(afterBytes, promise)), answer);
      });
      return {
        release() {
          generation.giveBack();
          resolve();
        },
      };
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

function held(afterBytes: number, released: Promise<void>): TransformStream<Uint8Array, Uint8Array> {
  let left = afterBytes;
  return new TransformStream({
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
