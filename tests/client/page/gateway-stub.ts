/** A client whose gateway is a list of responses, without a network. */

import {
  createGatewayClient,
  type GatewayClient,
  type GatewayClientOptions,
} from '../../../src/client/gateway-client.ts';
import type { GenerationOptions, GenerationProgress } from '../../../src/client/generation.ts';
import type { UpstreamData } from '../../../src/client/upstream-data.ts';
import { ORIGIN } from '../../support/world.ts';

export type Respond = (init: RequestInit) => Response | Promise<Response>;

export const ORDER = { model: 'm-1', prompt: 'rain on a tin roof', music_length_ms: 30_000 };
export const BASE_URL = 'http://gateway.test';
export const PROVIDER = {
  issuer: 'https://id.test',
  authorizationEndpoint: 'https://id.test/oauth/authorize',
  clientId: 'studio',
  redirectUri: `${ORIGIN}/callback`,
};

export const lost: Respond = () => Promise.reject(new TypeError('Failed to fetch'));

export function respond(
  status: number,
  headers: ResponseInit['headers'] = {},
  body: ConstructorParameters<typeof Response>[0] = null,
): Respond {
  return () => new Response(body, { status, headers });
}

/** The responses come one after the other, the last one again and again. `sent` has calls such as `GET /api/health`. */
export function stubGateway(
  responses: Respond | readonly Respond[],
  options: Partial<Omit<GatewayClientOptions, 'fetch'>> = {},
) {
  const script = [responses].flat();
  const sent: { call: string; headers: Headers; init: RequestInit; at: number }[] = [];
  const client = createGatewayClient<UpstreamData>({
    baseUrl: BASE_URL,
    async fetch(url, init) {
      const next = script[Math.min(sent.length, script.length - 1)] ?? lost;
      const call = `${init.method ?? 'GET'} ${url.replace(BASE_URL, '')}`;
      sent.push({ call, headers: new Headers(init.headers), init, at: performance.now() });
      return next(init);
    },
    ...options,
  });
  return { client, sent };
}

/** The storage of a tab, with room for so many writes. */
export function openStorage(room = 100) {
  const stored = new Map<string, string>();
  let writes = 0;
  return {
    stored,
    getItem: (key: string) => stored.get(key) ?? null,
    setItem(key: string, value: string) {
      if (writes++ >= room) throw new DOMException('The quota has been exceeded.', 'QuotaExceededError');
      stored.set(key, value);
    },
    removeItem: (key: string) => void stored.delete(key),
  };
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
export async function receive(
  client: Pick<GatewayClient, 'generate'>,
  options: GenerationOptions = {},
  order = ORDER,
) {
  const states: string[] = [];
  const onProgress = (progress: GenerationProgress) => {
    if (progress.state !== states.at(-1)) states.push(progress.state);
    options.onProgress?.(progress);
  };
  const { body, ...generation } = await client.generate(order, { ...options, onProgress });
  return { audio: await new Response(body).bytes(), states, ...generation };
}
