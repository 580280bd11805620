/** The calls of a session's life, from the browser to the gateway and from the gateway to the servers behind it. */

import { expect } from 'bun:test';
import { type MessageKey, messages } from '../../src/gateway/http/messages.ts';
import type { Received } from './scripted-upstream.ts';
import { envelopeMessage, type RequestOptions, type World } from './world.ts';

/** What the identity provider and the upstream receive. */
export const TOKEN = 'POST /oauth/token';
export const SIGN_IN = 'POST /v1/auth/idp';
export const ME = 'GET /v1/me';
export const REFRESH = 'POST /v1/auth/refresh';
export const LOGOUT = 'POST /v1/auth/logout';

export const GRANT = { code: 'code-1', code_verifier: 'verifier-0123456789-0123456789-0123456789-x' };

export function pair(generation: number) {
  return { access_token: `access-${generation}`, refresh_token: `refresh-${generation}` };
}

/** The Cookie header with that pair. */
export function cookies(generation: number): string {
  return `svc_music_access=access-${generation}; svc_music_refresh=refresh-${generation}`;
}

/** Responds with this status, and with JSON if there is a body. */
export function reply(status: number, body?: unknown): () => Response {
  return () => (body === undefined ? new Response(null, { status }) : Response.json(body, { status }));
}

/** Never responds. */
export function silence(): Promise<Response> {
  return new Promise(() => {});
}

/** Responds to this access token; every other one has expired. */
export function accept(accessToken: string, respond: () => Response | Promise<Response> = reply(200, {})) {
  return ({ headers }: Received) =>
    headers.get('authorization') === `Bearer ${accessToken}`
      ? respond()
      : Response.json({ message: 'expired' }, { status: 401 });
}

/** The identity provider gives `identity-1`, for which the upstream gives the pair. */
export function scriptSignIn({ upstream }: Pick<World, 'upstream'>, tokens: unknown = pair(1)): void {
  upstream.on(TOKEN, reply(200, { access_token: 'identity-1' })).on(SIGN_IN, reply(200, tokens));
}

export function signIn(world: World, grant: unknown = GRANT, options: RequestOptions = {}) {
  return world.request('/api/auth/idp', { json: grant, ...options });
}

export function checkSession(world: World, cookie?: string): Promise<Response> {
  return world.request('/api/auth/session', cookie === undefined ? {} : { cookie });
}

export function signOut(world: World, cookie?: string): Promise<Response> {
  return world.request('/api/auth/logout', { method: 'POST', ...(cookie === undefined ? {} : { cookie }) });
}

/** What a browser sends back of the cookies in this response. */
export function sentBack(response: Response): string {
  const lines = response.headers.getSetCookie();
  return lines.map((line) => line.slice(0, line.indexOf(';'))).join('; ');
}

/** Asserts an error of the gateway that sets or clears no cookie. */
export async function expectRefused(response: Response, status: number, key: MessageKey): Promise<void> {
  expect(await envelopeMessage(response, status)).toBe(messages.en[key]);
  expect(response.headers.getSetCookie()).toEqual([]);
}

/** How often the upstream was asked to refresh. */
export function refreshes({ upstream }: Pick<World, 'upstream'>): number {
  return upstream.calls.filter((call) => call === REFRESH).length;
}
