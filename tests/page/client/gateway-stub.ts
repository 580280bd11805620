/** A client whose gateway is a list of responses, without a network. */

import {
  createGatewayClient,
  type GatewayClient,
  type GatewayClientOptions,
} from '../../../src/client/gateway-client.ts';
import type { GenerationOptions, GenerationProgress } from '../../../src/client/generation.ts';

export type Respond = (init: RequestInit) => Response | Promise<Response>;

interface Sent {
  /** Such as `GET /api/music/models`. */
  readonly call: string;
  readonly headers: Headers;
  readonly init: RequestInit;
  readonly at: number;
}

type StubOptions = Partial<Omit<GatewayClientOptions, 'fetch'>>;

export const ORDER = { model: 'm-1', prompt: 'rain on a tin roof', music_length_ms: 30_000 };
export const BASE_URL = 'http://gateway.test';

/** The responses come one after the other, and the last one again and again. */
export function stubGateway(responses: readonly (Respond | undefined)[], options: StubOptions = {}) {
  const sent: Sent[] = [];
  const client = createGatewayClient({
    baseUrl: BASE_URL,
    async fetch(url, init) {
      const respond = responses[Math.min(sent.length, responses.length - 1)];
      const call = `${init.method ?? 'GET'} ${url.replace(BASE_URL, '')}`;
      sent.push({ call, headers: new Headers(init.headers), init, at: performance.now() });
      if (!respond) throw new TypeError('Failed to fetch');
      return respond(init);
    },
    ...options,
  });
  return { client, sent };
}

/** A response without a body. */
export function respond(status: number, headers: HeadersInit = {}): Respond {
  return () => new Response(null, { status, headers });
}

/** A client whose gateway always gives this response. */
export function respondWith(
  body: BodyInit | null,
  init: ResponseInit = {},
  options: StubOptions = {},
): GatewayClient {
  return stubGateway([() => new Response(body, init)], options).client;
}

/** The reason for which the promise is rejected. A promise that is not rejected fails the test. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  const settled = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ('error' in settled) return settled.error;
  throw new Error(`resolved with ${Bun.inspect(settled.value)}`);
}

/** Generates a track, and returns it with the states of its progress, without repetitions. */
export async function receive(client: GatewayClient, options: GenerationOptions = {}, order = ORDER) {
  const states: string[] = [];
  const onProgress = (progress: GenerationProgress) => {
    if (progress.state !== states.at(-1)) states.push(progress.state);
    options.onProgress?.(progress);
  };
  const { body, ...generation } = await client.generate(order, { ...options, onProgress });
  return { audio: await new Response(body).bytes(), states, ...generation };
}
