/** What a web app does with a client that is generated from the OpenAPI document; its types are in `gateway-api`. */

import type { components, paths } from 'gateway-api';
import createClient from 'openapi-fetch';

const gateway = createClient<paths>({ baseUrl: 'https://api.studio.example', credentials: 'include' });
const CREATION = '/api/upstream/v1/music/creations/{creation_id}';

/** Never called, but compiled: signs in, generates a track, publishes it, plays a part of it, and signs out. */
export async function useGateway(grant: { code: string; code_verifier: string }) {
  const isDone: boolean | undefined = (await gateway.POST('/api/auth/idp', { body: grant })).data?.ok;
  const session = await gateway.GET('/api/auth/session');
  const body = { model: 'sandbox-music-1', prompt: 'A quiet piano at night', music_length_ms: 3000 };
  const header = { 'Idempotency-Key': crypto.randomUUID() };
  const track = await gateway.POST('/api/music/generate', { body, params: { header }, parseAs: 'stream' });
  const audio: ReadableStream<Uint8Array> | null | undefined = track.data;
  const path = { creation_id: track.response.headers.get('x-music-creation-id') ?? '' };
  const changed = await gateway.PATCH(CREATION, { params: { path }, body: { is_public: true } });
  const range = { params: { path, header: { Range: 'bytes=0-99' } }, parseAs: 'arrayBuffer' } as const;
  const size: number | undefined = (await gateway.GET(`${CREATION}/content`, range)).data?.byteLength;
  const me = await gateway.GET('/api/upstream/v1/{rest}', { params: { path: { rest: 'me' } } });
  const upstream: (components['schemas']['UpstreamJson'] | undefined)[] = [changed.data, me.data];
  return { isDone, session, audio, size, upstream, signedOut: await gateway.POST('/api/auth/logout') };
}
