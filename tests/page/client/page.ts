/** A page of a web app in happy-dom, and the gateway's client in it. */

import { afterAll, beforeAll } from 'bun:test';
import { Window } from 'happy-dom';
import {
  createGatewayClient,
  type GatewayClient,
  type GatewayClientOptions,
} from '../../../src/client/gateway-client.ts';
import type { Environment } from '../../../src/gateway/settings/environment-reader.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { ORIGIN, startWorld, type World } from '../../support/world.ts';

const windows: Window[] = [];
afterAll(async () => {
  for (const window of windows.splice(0)) await window.happyDOM.close();
});

export function openPage(url = `${ORIGIN}/`): Window {
  const window = new Window({
    url,
    // The code that runs in it is ours.
    settings: { enableJavaScriptEvaluation: true, suppressInsecureJavaScriptEnvironmentWarning: true },
  });
  windows.push(window);
  return window;
}

/** The page's fetch, which applies cookies and CORS, with the classes of this process instead of the window's. */
export function fetchOf(page: Window): (url: string, init: RequestInit) => Promise<Response> {
  return async (url, { method = 'GET', headers, body, credentials = 'same-origin', signal }) => {
    const abort = new page.AbortController();
    signal?.addEventListener('abort', () => abort.abort(signal.reason), { once: true });
    if (signal?.aborted) abort.abort(signal.reason);
    const response = await page.fetch(url, {
      method,
      credentials,
      headers: Object.fromEntries(new Headers(headers)),
      signal: abort.signal,
      ...(typeof body === 'string' && { body }),
    });
    const { status, headers: received } = response;
    return new Response(streamOf(response.body), { status, headers: Object.fromEntries(received) });
  };
}

function streamOf(
  body: Awaited<ReturnType<Window['fetch']>>['body'],
): ReadableStream<Uint8Array<ArrayBuffer>> | null {
  const reader = body?.getReader();
  if (!reader) return null;
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/** Records what a fetch is called with. */
export function recorded(send: (url: string, init: RequestInit) => Promise<Response>) {
  const sent: { readonly url: string; readonly init: RequestInit }[] = [];
  const fetch = (url: string, init: RequestInit): Promise<Response> => {
    sent.push({ url, init });
    return send(url, init);
  };
  return { sent, fetch };
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

type PageOptions = Omit<GatewayClientOptions, 'baseUrl'>;

export function clientIn(
  page: Window,
  { url }: Pick<World, 'url'>,
  options: PageOptions = {},
): GatewayClient {
  return createGatewayClient({
    baseUrl: url,
    fetch: fetchOf(page),
    storage: page.sessionStorage,
    ...options,
  });
}

const PAIR = { access_token: 'access-1', refresh_token: 'refresh-1', expires_in: 60 };
export const PROVIDER = {
  issuer: 'https://id.test',
  authorizationEndpoint: 'https://id.test/oauth/authorize',
  clientId: 'studio',
  redirectUri: `${ORIGIN}/callback`,
};

/** Lets everybody sign in at the scripted upstream. */
export function scriptSignIn({ upstream }: World): void {
  upstream.on('POST /oauth/token', () => Response.json({ access_token: 'identity' }));
  upstream.on('POST /v1/auth/idp', () => Response.json(PAIR));
}

export async function signIn(client: GatewayClient): Promise<void> {
  const state = (await client.beginSignIn(PROVIDER)).searchParams.get('state');
  await client.completeSignIn(`${PROVIDER.redirectUri}?code=a-code&state=${state}`);
}

/** A page whose user has signed in with the client, in a world of its own. */
export async function openSignedIn(environment: Environment = {}, options: PageOptions = {}) {
  const world = startWorld(environment);
  scriptSignIn(world);
  const page = openPage();
  const client = clientIn(page, world, options);
  await signIn(client);
  return { world, page, client, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

/** A page whose upstream sends these bytes after each sign-in, and nothing more until `breakOff` cuts the connection. */
export async function openBreaking(bytes: string) {
  await using stack = new AsyncDisposableStack();
  const sockets: { destroy(): void }[] = [];
  const upstream = await startRawUpstream((socket, request) => {
    if (/^POST \/(oauth|v1\/auth)/.test(request)) {
      const pair = JSON.stringify(PAIR);
      socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${pair.length}\r\nConnection: close\r\n\r\n${pair}`);
    } else {
      sockets.push(socket);
      socket.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n${bytes}`);
    }
  });
  stack.use(upstream);
  const opened = stack.use(await openSignedIn({ UPSTREAM_URL: upstream.url }));
  const running = stack.move();
  return {
    ...opened,
    breakOff() {
      for (const socket of sockets) socket.destroy();
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** The same for all tests of a describe: what they script must not disturb each other. */
export function shareSignedIn() {
  let signedIn: Awaited<ReturnType<typeof openSignedIn>> | undefined;
  beforeAll(async () => {
    signedIn = await openSignedIn();
  });
  afterAll(() => signedIn?.[Symbol.asyncDispose]());
  return () => {
    if (!signedIn) throw new Error('Nobody is signed in before the tests begin');
    return signedIn;
  };
}

/** A client whose gateway always gives this response. */
export function respondWith(
  body: BodyInit | null,
  init: ResponseInit = {},
  options: PageOptions = {},
): GatewayClient {
  const fetch = async () => new Response(body, init);
  return createGatewayClient({ baseUrl: 'http://gateway.test', fetch, ...options });
}

/** A client whose gateway cannot be reached. */
export function failWith(cause: unknown): GatewayClient {
  return createGatewayClient({ baseUrl: 'http://gateway.test', fetch: () => Promise.reject(cause) });
}
