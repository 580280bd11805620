/** The browser's side of the gateway: sign-in, session, generation and library. Runs in pages and workers. */

import {
  type GatewayConnection,
  GatewayRequestError,
  isRecord,
  readData,
  sendRequest,
} from './gateway-request.ts';
import { type Generation, type GenerationOptions, type GenerationOrder, generate } from './generation.ts';
import {
  beginSignIn,
  completeSignIn,
  type IdentityProvider,
  isSignInResponse,
  type SignInStorage,
  withoutResponse,
} from './sign-in.ts';

/** What a page has, and a worker or a server has not. */
declare const sessionStorage: SignInStorage | undefined;
declare const location: { readonly href: string } | undefined;
declare const history:
  | { readonly state: unknown; replaceState(state: unknown, unused: string, url: URL): void }
  | undefined;

export interface GatewayClientOptions {
  /** The gateway's origin, such as `https://api.studio.example`; on the same site as the page, for its cookies. */
  readonly baseUrl: string;
  /** The language of error messages, as a language tag; what the browser prefers unless it gives one. */
  readonly language?: () => string | undefined;
  /** Called for each answer for which the gateway has renewed the session. */
  readonly onRefresh?: () => void;
  /** The page's `fetch` unless given. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Where a sign-in is remembered while the user is away; the tab's `sessionStorage` unless given. */
  readonly storage?: SignInStorage;
}

/** Without a session, or with one and what the upstream tells of its user. */
export type SessionCheck =
  | { readonly authenticated: false }
  | { readonly authenticated: true; readonly profile?: unknown };

/**
 * What the upstream answers is `unknown`, because only it knows the shape; an optional `data` around it is taken off.
 * Every method throws {@link GatewayRequestError}.
 */
export interface GatewayClient {
  /** The address at the identity provider to send the user to; verifier and state stay in the tab's storage. */
  beginSignIn(provider: IdentityProvider): Promise<URL>;
  /**
   * Completes a sign-in when this address, the page's own unless given, is the identity provider's answer, and takes
   * the answer out of the address bar and the history.
   *
   * @returns false when the address is no such answer
   * @throws SignInError when the answer is a refusal, or not to a sign-in of this tab
   */
  completeSignIn(address?: string): Promise<boolean>;
  /** Never from a cache. A session that the upstream has ended is none. */
  session(): Promise<SessionCheck>;
  models(): Promise<unknown>;
  /** Orders a track, and returns as soon as its audio begins. */
  generate(order: GenerationOrder, options?: GenerationOptions): Promise<Generation>;
  creations(): Promise<unknown>;
  setVisibility(creationId: string, isPublic: boolean): Promise<unknown>;
  /** For an `audio` element with `crossorigin="use-credentials"`. */
  contentUrl(creationId: string): string;
  /** For an `audio` element with `crossorigin="anonymous"`; plays without a session. */
  publicContentUrl(creationId: string): string;
  /** Any other path below the upstream's `/v1/`. The answer's status is 2xx. */
  upstream(path: `/v1/${string}`, init?: RequestInit): Promise<Response>;
  /** GET of such a path, whose answer is JSON. */
  upstreamData(path: `/v1/${string}`): Promise<unknown>;
  signOut(): Promise<void>;
}

export function createGatewayClient(options: GatewayClientOptions): GatewayClient {
  const connection: GatewayConnection = {
    baseUrl: options.baseUrl.replace(/\/$/, ''),
    language: options.language ?? (() => undefined),
    onRefresh: options.onRefresh ?? (() => {}),
    // Not `fetch` itself: called as a method it would lose its `this`.
    fetch: options.fetch ?? ((url, init) => fetch(url, init)),
  };
  const upstream = (path: string, init?: RequestInit) =>
    sendRequest(connection, `/api/upstream${path}`, init);
  const upstreamData = async (path: string) => readData(await upstream(path));
  const creationPath = (id: string) => `/v1/music/creations/${encodeURIComponent(id)}`;
  const contentUrl = (path: string) => `${connection.baseUrl}/api/upstream${path}/content`;

  return {
    beginSignIn: (provider) => beginSignIn(storageOf(options), provider),
    async completeSignIn(address = typeof location === 'undefined' ? '' : location.href) {
      const answer = new URL(address);
      if (!isSignInResponse(answer)) return false;
      if (typeof history !== 'undefined') history.replaceState(history.state, '', withoutResponse(answer));
      await completeSignIn(connection, storageOf(options), answer);
      return true;
    },
    session: () => checkSession(connection),
    models: async () => readData(await sendRequest(connection, '/api/music/models')),
    generate: (order, generationOptions) => generate(connection, order, generationOptions),
    creations: () => upstreamData('/v1/music/creations'),
    async setVisibility(creationId, isPublic) {
      const response = await upstream(creationPath(creationId), {
        method: 'PATCH',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ is_public: isPublic }),
      });
      return readData(response);
    },
    contentUrl: (creationId) => contentUrl(creationPath(creationId)),
    publicContentUrl: (creationId) => contentUrl(`/v1/music/public/${encodeURIComponent(creationId)}`),
    upstream,
    upstreamData,
    async signOut() {
      await sendRequest(connection, '/api/auth/logout', { method: 'POST' });
    },
  };
}

async function checkSession(connection: GatewayConnection): Promise<SessionCheck> {
  try {
    const response = await sendRequest(connection, '/api/auth/session', { cache: 'no-store' });
    const body = await readData(response);
    const isAnonymous = isRecord(body) && body['authenticated'] === false;
    if (isAnonymous) return { authenticated: false };
    const hasProfile = !(isRecord(body) && body['authenticated'] === true);
    return { authenticated: true, ...(hasProfile && { profile: body }) };
  } catch (error) {
    if (error instanceof GatewayRequestError && error.status === 401) return { authenticated: false };
    throw error;
  }
}

/** @throws TypeError in a worker, which has no `sessionStorage` and must be given another */
function storageOf({ storage }: GatewayClientOptions): SignInStorage {
  const found = storage ?? (typeof sessionStorage === 'undefined' ? undefined : sessionStorage);
  if (!found) throw new TypeError('There is no sessionStorage here: give the client a storage.');
  return found;
}
