/** What a web app does with a client that is generated from the OpenAPI document; its types are in `gateway-api`. */

import type { components, paths } from 'gateway-api';
import createClient, { type Client } from 'openapi-fetch';

type UpstreamJson = components['schemas']['UpstreamJson'];

export interface Grant {
  readonly code: string;
  readonly code_verifier: string;
}

/** Signs in, generates a track, publishes it, reads all that a studio shows, and signs out. */
export async function useGateway(
  baseUrl: string,
  fetch: (request: Request) => Promise<Response>,
  grant: Grant,
) {
  const gateway = createClient<paths>({ baseUrl, credentials: 'include', fetch });

  const refused = await gateway.GET('/api/music/models');
  const signedIn = await gateway.POST('/api/auth/idp', { body: grant });
  const session = await gateway.GET('/api/auth/session');
  const models = await gateway.GET('/api/music/models');

  const body = { model: 'sandbox-music-1', prompt: 'A quiet piano at night', music_length_ms: 3000 };
  const header = { 'Idempotency-Key': crypto.randomUUID() };
  const track = await gateway.POST('/api/music/generate', { body, params: { header }, parseAs: 'stream' });
  const audio = await new Response(track.data).arrayBuffer();

  const path = { creation_id: track.response.headers.get('x-music-creation-id') ?? '' };
  const changed = await gateway.PATCH('/api/upstream/v1/music/creations/{creation_id}', {
    params: { path },
    body: { is_public: true },
  });
  const creation = await gateway.GET('/api/upstream/v1/music/creations/{creation_id}', { params: { path } });
  const creations = await gateway.GET('/api/upstream/v1/music/creations');
  const content = await gateway.GET('/api/upstream/v1/music/creations/{creation_id}/content', {
    params: { path, header: { Range: 'bytes=0-99' } },
    parseAs: 'arrayBuffer',
  });
  const shared = await gateway.GET('/api/upstream/v1/music/public/{creation_id}', { params: { path } });
  const sharedContent = await gateway.GET('/api/upstream/v1/music/public/{creation_id}/content', {
    params: { path },
    parseAs: 'blob',
  });
  const balance = await gateway.GET('/api/upstream/v1/billing/balance');
  const summary = await gateway.GET('/api/upstream/v1/billing/summary');
  const activity = await gateway.GET('/api/upstream/v1/activity');
  const profile = await gateway.GET('/api/upstream/v1/{rest}', { params: { path: { rest: 'me' } } });
  const unknown = await gateway.GET('/api/upstream/v1/music/creations/{creation_id}', {
    params: { path: { creation_id: 'unknown' } },
  });
  const signedOut = await gateway.POST('/api/auth/logout');

  const isDone: boolean | undefined = signedIn.data?.ok;
  return {
    isDone,
    refusal: messageOf(refused.error),
    name: field(dataOf(session.data), 'name'),
    models: dataOf(models.data),
    bytes: [audio.byteLength, content.data?.byteLength, sharedContent.data?.size],
    isPublic: [changed.data, creation.data, shared.data].map((each) => field(dataOf(each), 'is_public')),
    creations: dataOf(creations.data),
    balance: field(dataOf(balance.data), 'balance'),
    generations: field(dataOf(summary.data), 'generations'),
    activity: dataOf(activity.data),
    profile: dataOf(profile.data),
    notFound: [unknown.response.status, messageOf(unknown.error)],
    isSignedOut: signedOut.data?.ok,
  };
}

/** Never called: the compiler refuses each of these calls. */
export const mistakes = (gateway: Client<paths>) => [
  // @ts-expect-error There is no such path.
  gateway.GET('/api/music/model'),
  // @ts-expect-error The length is missing.
  gateway.POST('/api/music/generate', { body: { model: 'm', prompt: 'p' } }),
  // @ts-expect-error The id is missing.
  gateway.GET('/api/upstream/v1/music/creations/{creation_id}', {}),
  // @ts-expect-error A body has no form that is known here.
  gateway.GET('/api/upstream/v1/billing/balance').then(({ data }) => data?.balance),
];

/** An error of the gateway or of the upstream, which is JSON of any form. */
function messageOf(error: components['schemas']['Error'] | UpstreamJson | undefined): unknown {
  return field(field(error, 'error'), 'message');
}

function dataOf(body: UpstreamJson | undefined): unknown {
  return field(body, 'data');
}

function field(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return Object.entries(value).find(([key]) => key === name)?.[1];
}
