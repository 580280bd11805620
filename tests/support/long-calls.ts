/** A call of a route, a full pool or ledger, and how a call is refused then. */

import { expect } from 'bun:test';
import type { RouteCase } from './routes.ts';
import { envelopeMessage, ORIGIN, type RequestOptions, type World } from './world.ts';

export function send(world: World, route: Pick<RouteCase, 'path' | 'options'>, changed: RequestOptions = {}) {
  return world.request(route.path, { ...route.options, ...changed });
}

/** Takes what is left. */
export function fill(room: { inUse: number; readonly limit: number }): void {
  room.inUse = room.limit;
}

/** Asserts that there was no room for the request, or none for more of its session. */
export async function expectOverloaded(refused: Response, status: 429 | 503 = 503): Promise<void> {
  expect(Object.fromEntries(refused.headers)).toMatchObject({
    'retry-after': '5',
    'proxy-status': 'music-gateway; error=connection_limit_reached',
    'access-control-allow-origin': ORIGIN,
  });
  const texts = { 429: 'Your session has too many requests in flight', 503: 'Too many requests' };
  if (refused.body) expect(await envelopeMessage(refused, status)).toContain(texts[status]);
  else expect(refused.status).toBe(status);
}
