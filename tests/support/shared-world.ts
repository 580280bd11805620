/** A world for all tests of a describe, and requests to a world on a raw socket. */

import { afterAll, afterEach, beforeEach, expect } from 'bun:test';
import type { Environment } from '../../src/gateway/settings/environment-reader.ts';
import { rawRequest } from './raw-http.ts';
import { ORIGIN, SIGNED_IN, startWorld, type World } from './world.ts';

/** Call it in a describe. Each test begins with nothing received and no warning; scripted responses stay. */
export function sharedWorld(environment: Environment = {}): World {
  const world = startWorld(environment);
  beforeEach(() => {
    world.upstream.received.length = 0;
    world.log.length = 0;
  });
  afterEach(() => expect(world.upstream.unexpected.splice(0)).toEqual([]));
  afterAll(() => world[Symbol.asyncDispose]());
  return world;
}

interface RawCall {
  readonly cookie?: string;
  /** The lines with Host and Origin; each ends with a line break. */
  readonly host?: string;
  readonly origin?: string;
  readonly version?: string;
  readonly lines?: readonly string[];
  readonly body?: string;
}

/** A request such as `GET /api/health` of a signed-in browser, with whatever a client could write. */
export function rawText(start: string, call: RawCall = {}): string {
  const { cookie = SIGNED_IN, host = 'Host: gateway.test\r\n', version = 'HTTP/1.1' } = call;
  const { origin = `Origin: ${ORIGIN}\r\n`, lines = [], body = '' } = call;
  const cookies = cookie === '' ? [] : [`Cookie: ${cookie}`];
  const head = [...cookies, 'Connection: close', ...lines].join('\r\n');
  return `${start} ${version}\r\n${host}${origin}${head}\r\n\r\n${body}`;
}

export function rawCall(world: Pick<World, 'port'>, start: string, call?: RawCall) {
  return rawRequest(world.port, rawText(start, call));
}
