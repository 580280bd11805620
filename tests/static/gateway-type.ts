/** What Elysia knows of the routes, and typed clients such as Eden read: `bun run static` compiles it. */

import type { Gateway } from '../../src/gateway/gateway.ts';

type Api = Gateway['~Routes']['api'];
type Equal<A, B> = [A, B] extends [B, A] ? true : false;
type Accepts<To, From> = From extends To ? true : false;

type SignIn = Api['auth']['idp']['post']['body'];
type Generation = Api['music']['generate']['post']['body'];
type Track = { model: string; prompt: string; music_length_ms: number };
type SessionState = Response | { authenticated: true } | { authenticated: false };

/** Each must be what its value says. */
export const GATEWAY_TYPE: {
  signIn: Equal<SignIn, { code: string; code_verifier: string }>;
  generationNeeds: Accepts<Track, Generation>;
  generation: Accepts<Generation, Track & { is_public: boolean }>;
  codeAlone: Accepts<SignIn, { code: string }>;
  textForNumber: Accepts<Generation, { model: string; prompt: string; music_length_ms: string }>;
  methods: Equal<keyof Api['music']['generate'], 'post'>;
  session: Equal<Api['auth']['session']['get']['response'][200], SessionState>;
  signOut: Equal<Api['auth']['logout']['post']['response'][200], { ok: boolean }>;
  health: Equal<Api['health']['get']['response'][200], { service: string; status: string }>;
  models: Equal<Api['music']['models']['get']['response'][200], Response>;
} = {
  signIn: true,
  generationNeeds: true,
  generation: true,
  codeAlone: false,
  textForNumber: false,
  methods: true,
  session: true,
  signOut: true,
  health: true,
  models: true,
};
