/** Gives each handler its session, by a derive(). */

import { Elysia } from 'elysia';
import { Session, type SessionParts } from './session.ts';

export function createSessionPlugin(parts: SessionParts) {
  return new Elysia({ name: 'session' }).derive({ as: 'scoped' }, ({ request, server, set }) => ({
    session: new Session(parts, { request, server, set }),
  }));
}

export type SessionPlugin = ReturnType<typeof createSessionPlugin>;
