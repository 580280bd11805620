/** A web worker that signs in and generates with the client; it has no storage, location or history of a page. */

import { createGatewayClient } from '../../../src/client/gateway-client.ts';
import type { IdentityProvider } from '../../../src/client/sign-in.ts';
import { CookieJar } from '../../../src/demo/tour/cookie-jar.ts';

/** What the worker is told: first where everything is, then the address that the user came back to. */
export interface Task {
  readonly gatewayUrl: string;
  readonly origin: string;
  readonly provider: IdentityProvider;
}

/** What it tells: the address to send the user to, and what came of it all. */
export interface Report {
  readonly without: { readonly storage: string; readonly address: string };
  readonly remembered: number;
  readonly session: unknown;
  readonly bytes: number;
  readonly progress: readonly number[];
}

const ORDER = { model: 'sandbox-music-1', prompt: 'a worker song', music_length_ms: 3000 };

function next<Data>(): Promise<Data> {
  return new Promise((resolve) =>
    addEventListener('message', ({ data }: MessageEvent<Data>) => resolve(data), { once: true }),
  );
}

const { gatewayUrl, origin, provider } = await next<Task>();
const jar = new CookieJar();
const remembered = new Map<string, string>();
const client = createGatewayClient({
  baseUrl: gatewayUrl,
  // What a browser adds.
  fetch(url, init) {
    const headers = new Headers(init.headers);
    headers.set('origin', origin);
    return jar.fetch(new URL(url), { ...init, headers });
  },
  storage: {
    getItem: (key) => remembered.get(key) ?? null,
    setItem: (key, value) => void remembered.set(key, value),
    removeItem: (key) => void remembered.delete(key),
  },
});

const nameOf = (error: Error) => error.name;
const without = {
  storage: await createGatewayClient({ baseUrl: gatewayUrl }).beginSignIn(provider).then(String, nameOf),
  address: await client.completeSignIn().then(String, nameOf),
};

const answer = next<string>();
postMessage((await client.beginSignIn(provider)).href);
await client.completeSignIn(await answer);
const progress: number[] = [];
const { body } = await client.generate(ORDER, { onProgress: ({ bytes }) => progress.push(bytes) });
let bytes = 0;
for await (const piece of body) bytes += piece.byteLength;
const session = await client.session();
postMessage({ without, remembered: remembered.size, session, bytes, progress } satisfies Report);
