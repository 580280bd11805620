/** Gives each handler its exchange and its session, by a derive(). */

import { Elysia } from 'elysia';
import { exchangeOf } from '../http/exchange.ts';
import { Session, type SessionParts } from './session.ts';

export function createSessionPlugin(parts: SessionParts) {
  return new Elysia({ name: 'session' }).derive({ as: 'scoped' }, ({ request }) => {
    const exchange = exchangeOf(request);
    return { exchange, session: new Session(parts, exchange) };
  });
}

export type SessionPlugin = ReturnType<typeof createSessionPlugin>;
