/** Gives each handler its exchange and its session, by a derive(). */

import { type Context, Elysia } from 'elysia';
import type { Exchange } from '../http/exchange.ts';
import { Session, type SessionParts } from './session.ts';

export type ExchangeOf = (context: Pick<Context, 'request' | 'set'>) => Exchange;

export function createSessionPlugin(parts: SessionParts, exchangeOf: ExchangeOf) {
  return new Elysia({ name: 'session' }).derive({ as: 'scoped' }, ({ request, set }) => {
    const exchange = exchangeOf({ request, set });
    return { exchange, session: new Session(parts, exchange) };
  });
}

export type SessionPlugin = ReturnType<typeof createSessionPlugin>;
