/** What Elysia knows of the routes, and typed clients such as Eden read: `bun run static` compiles it. */

import type { Gateway } from '../../src/gateway/gateway.ts';

type Api = Gateway['~Routes']['api'];
type Equal<A, B> = [A, B] extends [B, A] ? true : false;
type Accepts<To, From> = From extends To ? true : false;

type Generation = Api['music']['generate']['post']['body'];
type Track = { model: string; prompt: string; music_length_ms: number };
type SessionState = Response | { authenticated: true } | { authenticated: false };

/** Each must be what its value says. */
export const GATEWAY_TYPE: {
  signIn: Equal<Api['auth']['idp']['post']['body'], { code: string; code_verifier: string }>;
  generation: Accepts<Generation, Track & { is_public: boolean }>;
  generationNeeds: Accepts<Track, Generation>;
  textForNumber: Accepts<Generation, { model: string; prompt: string; music_length_ms: string }>;
  session: Equal<Api['auth']['session']['get']['response'][200], SessionState>;
} = { signIn: true, generation: true, generationNeeds: true, textForNumber: false, session: true };
