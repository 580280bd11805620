/** The derive() that gives a handler its session. */

import { Elysia } from 'elysia';
import { SessionCookies } from './cookies.ts';
import { Session, type SessionParts } from './session.ts';

export function createSessionPlugin(parts: SessionParts) {
  const cookies = new SessionCookies(parts.settings);
  return new Elysia({ name: 'session' }).derive({ as: 'scoped' }, ({ request, server, set }) => ({
    session: new Session(parts, cookies, { request, server, set }),
  }));
}

export type SessionPlugin = ReturnType<typeof createSessionPlugin>;
