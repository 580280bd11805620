/** A page of a web app in happy-dom, and the gateway's client in it. */

import { afterEach } from 'bun:test';
import { Window } from 'happy-dom';
import {
  createGatewayClient,
  type GatewayClient,
  type GatewayClientOptions,
} from '../../../src/client/gateway-client.ts';
import { ORIGIN, type World } from '../../support/world.ts';

const windows: Window[] = [];
afterEach(async () => {
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

/** The page's fetch, which knows cookies and CORS; it takes and gives nothing but classes of its own window. */
export function fetchOf(page: Window): (url: string, init: RequestInit) => Promise<Response> {
  return async (url, { method = 'GET', headers, body, credentials = 'same-origin', signal }) => {
    const abort = new page.AbortController();
    signal?.addEventListener('abort', () => abort.abort(signal.reason), { once: true });
    if (signal?.aborted) abort.abort(signal.reason);
    const answer = await page.fetch(url, {
      method,
      credentials,
      headers: Object.fromEntries(new Headers(headers)),
      signal: abort.signal,
      ...(typeof body === 'string' && { body }),
    });
    const { status, headers: answered } = answer;
    return new Response(streamOf(answer.body), { status, headers: Object.fromEntries(answered) });
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

interface Sent {
  readonly url: string;
  readonly init: RequestInit;
}

/** The same fetch, and what it was called with. */
export function recorded(send: (url: string, init: RequestInit) => Promise<Response>) {
  const sent: Sent[] = [];
  const fetch = (url: string, init: RequestInit): Promise<Response> => {
    sent.push({ url, init });
    return send(url, init);
  };
  return { sent, fetch };
}

/** What the promise is rejected with; it fails the test when it is not. */
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

/** A page whose user has signed in at the scripted upstream with the client. */
export async function openSignedIn(world: World, options: PageOptions = {}) {
  world.upstream.on('POST /oauth/token', () => Response.json({ access_token: 'identity' }));
  world.upstream.on('POST /v1/auth/idp', () => Response.json(PAIR));
  const page = openPage();
  const client = clientIn(page, world, options);
  const state = (await client.beginSignIn(PROVIDER)).searchParams.get('state');
  await client.completeSignIn(`${PROVIDER.redirectUri}?code=a-code&state=${state}`);
  return { page, client };
}
