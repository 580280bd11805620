/** A page of a web app in happy-dom, and the gateway's client in it. */

import { afterAll } from 'bun:test';
import { Window } from 'happy-dom';
import {
  createGatewayClient,
  type GatewayClient,
  type GatewayClientOptions,
} from '../../../src/client/gateway-client.ts';
import { ORIGIN, startWorld, type World } from '../../support/world.ts';

const windows: Window[] = [];
afterAll(async () => {
  for (const window of windows.splice(0)) await window.happyDOM.close();
});

export function openPage(): Window {
  const window = new Window({
    url: `${ORIGIN}/`,
    // The code that runs in it is ours.
    settings: { enableJavaScriptEvaluation: true, suppressInsecureJavaScriptEnvironmentWarning: true },
  });
  windows.push(window);
  return window;
}

/** The page's fetch, which applies cookies and CORS, with the classes of this process instead of the window's. */
function fetchOf(page: Window) {
  return async (url: string, { method = 'GET', headers, body, credentials = 'same-origin' }: RequestInit) => {
    const response = await page.fetch(url, {
      method,
      credentials,
      headers: Object.fromEntries(new Headers(headers)),
      ...(typeof body === 'string' && { body }),
    });
    const { status, headers: received } = response;
    const content = response.body && (await response.arrayBuffer());
    return new Response(content, { status, headers: Object.fromEntries(received) });
  };
}

type PageOptions = Omit<GatewayClientOptions, 'baseUrl'>;

export function clientIn(page: Window, { url }: World, options: PageOptions = {}): GatewayClient {
  return createGatewayClient({
    baseUrl: url,
    fetch: fetchOf(page),
    storage: page.sessionStorage,
    ...options,
  });
}

export const PROVIDER = {
  issuer: 'https://id.test',
  authorizationEndpoint: 'https://id.test/oauth/authorize',
  clientId: 'studio',
  redirectUri: `${ORIGIN}/callback`,
};

/** Lets everybody sign in at the scripted upstream. */
export function scriptSignIn({ upstream }: World): void {
  const pair = { access_token: 'access-1', refresh_token: 'refresh-1', expires_in: 60 };
  upstream.on('POST /oauth/token', () => Response.json({ access_token: 'identity' }));
  upstream.on('POST /v1/auth/idp', () => Response.json(pair));
}

/** A page whose user has signed in with the client, in a world of its own. */
export async function openSignedIn(options: PageOptions = {}) {
  const world = startWorld();
  scriptSignIn(world);
  const page = openPage();
  const client = clientIn(page, world, options);
  const state = (await client.beginSignIn(PROVIDER)).searchParams.get('state');
  await client.completeSignIn(`${PROVIDER.redirectUri}?code=a-code&state=${state}`);
  return { world, page, client, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}
