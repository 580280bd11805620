/** Calls that stay in flight for as long as a test wants, and how a call beyond a limit is refused. */

import { expect } from 'bun:test';
import type { Budget } from '../../src/gateway/http/admission/budget.ts';
import { ACCESS_ONLY, envelopeMessage, ORIGIN, type RequestOptions, type World } from './world.ts';

export interface LongCall {
  readonly name: string;
  /** As the upstream receives it. */
  readonly call: string;
  readonly send: (world: World, options?: RequestOptions) => Promise<Response>;
}

export const TRACK = { model: 'm', prompt: 'p', music_length_ms: 3000 };

export const GENERATE: LongCall = {
  name: 'generate',
  call: 'POST /v1/music',
  send: (world, options) =>
    world.request('/api/music/generate', { cookie: ACCESS_ONLY, json: TRACK, ...options }),
};
export const PROXY: LongCall = {
  name: 'the proxy',
  call: 'GET /v1/slow',
  send: (world, options) => world.request('/api/upstream/v1/slow', { cookie: ACCESS_ONLY, ...options }),
};
export const PLAYBACK: LongCall = {
  name: 'public playback',
  call: 'GET /v1/music/public/1',
  send: (world, options) => world.request('/api/upstream/v1/music/public/1', options),
};

/** The calls wait until they are released, and then respond with what they are given. */
export function waiting(world: World, call: string, respond: () => Response = () => new Response('done')) {
  const released = Promise.withResolvers<void>();
  world.upstream.on(call, () => released.promise.then(respond));
  return released;
}

/** A body that continues for as long as someone reads it. */
export function endless(onCancel = () => {}): Response {
  const pull = (controller: ReadableStreamDefaultController) => controller.enqueue(new Uint8Array(64 * 1024));
  return new Response(new ReadableStream({ pull, cancel: onCancel }));
}

/** Takes what is left, except so much. */
export function fill(budget: Budget, free = 0): void {
  budget.take(budget.limit - free - budget.inUse);
}

export async function expectRefused(refused: Response, status = 503): Promise<void> {
  expect(refused.headers.get('retry-after')).toBe('5');
  expect(refused.headers.get('proxy-status')).toBe('music-gateway; error=connection_limit_reached');
  expect(refused.headers.get('access-control-allow-origin')).toBe(ORIGIN);
  const texts = new Map([
    [429, 'Your session has too many requests in flight'],
    [503, 'Too many requests'],
  ]);
  expect(await envelopeMessage(refused, status)).toContain(texts.get(status) ?? '');
}
