/** The browser's side of the gateway: sign-in, session, generation and library. Runs in pages and workers. */

import {
  type GatewayConnection,
  GatewayRequestError,
  isRecord,
  requestData,
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
  | { readonly state: unknown; replaceState(state: unknown, unused: string, address: string): void }
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
 * What the upstream answers is `unknown`, because only it knows the shape; an optional `data` around it is taken off,
 * and an empty answer is undefined. Every method that asks the gateway throws {@link GatewayRequestError}.
 *
 * Signing in and generating need a secure context, as `https:` and `localhost` are.
 */
export interface GatewayClient {
  /** The address at the identity provider to send the user to; verifier and state stay in the tab's storage. */
  beginSignIn(provider: IdentityProvider): Promise<URL>;
  /**
   * Completes a sign-in when this address, the page's own unless given, is the identity provider's answer, and takes
   * the answer out of the page's own address, and so out of the history. After any failure a new one has to be begun.
   *
   * @returns false when the address is no such answer
   * @throws SignInError when the answer is a refusal, or not to a sign-in of this tab
   * @throws TypeError when the address is not absolute
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
  /** Any other path below the upstream's `/v1/`, with ids encoded. The answer's status is 2xx. */
  upstream(path: `/v1/${string}`, init?: RequestInit): Promise<Response>;
  /** GET of such a path, whose answer is JSON. */
  upstreamData(path: `/v1/${string}`): Promise<unknown>;
  signOut(): Promise<void>;
}

export function createGatewayClient(options: GatewayClientOptions): GatewayClient {
  const connection: GatewayConnection = {
    baseUrl: options.baseUrl.replace(/\/+$/, ''),
    language: options.language ?? (() => undefined),
    onRefresh: options.onRefresh ?? (() => {}),
    // A browser's `fetch` refuses to be called as the method of another object.
    fetch: (url, init) => (options.fetch ?? fetch)(url, init),
  };
  const upstreamData = (path: string, init?: RequestInit) =>
    requestData(connection, `/api/upstream${path}`, init);
  const creationPath = (id: string) => `/v1/music/creations/${pathSegment(id)}`;
  const contentUrl = (path: string) => `${connection.baseUrl}/api/upstream${path}/content`;

  return {
    beginSignIn: async (provider) => beginSignIn(storageOf(options), provider),
    async completeSignIn(address = typeof location === 'undefined' ? '' : location.href) {
      // The browser's own error would quote the address, and with it the code.
      if (!URL.canParse(address)) throw new TypeError('An absolute address is needed.');
      const answer = new URL(address);
      if (!isSignInResponse(answer)) return false;
      cleanPageAddress();
      await completeSignIn(connection, storageOf(options), answer);
      return true;
    },
    session: () => checkSession(connection),
    models: () => requestData(connection, '/api/music/models'),
    generate: (order, generationOptions) => generate(connection, order, generationOptions),
    creations: () => upstreamData('/v1/music/creations'),
    setVisibility: async (creationId, isPublic) =>
      upstreamData(creationPath(creationId), {
        method: 'PATCH',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ is_public: isPublic }),
      }),
    contentUrl: (creationId) => contentUrl(creationPath(creationId)),
    publicContentUrl: (creationId) => contentUrl(`/v1/music/public/${pathSegment(creationId)}`),
    upstream: (path, init) => sendRequest(connection, `/api/upstream${path}`, init),
    upstreamData: (path) => upstreamData(path),
    async signOut() {
      await sendRequest(connection, '/api/auth/logout', { method: 'POST' });
    },
  };
}

async function checkSession(connection: GatewayConnection): Promise<SessionCheck> {
  try {
    const body = await requestData(connection, '/api/auth/session', { cache: 'no-store' });
    if (isRecord(body) && body['authenticated'] === false) return { authenticated: false };
    return { authenticated: true, ...(!isBareState(body) && { profile: body }) };
  } catch (error) {
    if (error instanceof GatewayRequestError && error.sessionHasEnded) return { authenticated: false };
    throw error;
  }
}

/** What the gateway answers for an upstream without profiles; one with more than that is a profile. */
function isBareState(body: unknown): boolean {
  if (body === undefined) return true;
  return isRecord(body) && body['authenticated'] === true && Object.keys(body).length === 1;
}

/** Only the page's own address, which need not be the one that was given. */
function cleanPageAddress(): void {
  if (typeof history === 'undefined' || typeof location === 'undefined') return;
  const address = new URL(location.href);
  if (isSignInResponse(address)) history.replaceState(history.state, '', withoutResponse(address).href);
}

/**
 * An id as it goes into a path. A browser would resolve a dot segment, and so ask for another path; encoded twice, the
 * gateway refuses it.
 */
function pathSegment(id: string): string {
  return /^\.{1,2}$/.test(id) ? id.replaceAll('.', '%252E') : encodeURIComponent(id);
}

/** @throws TypeError in a worker, which has no `sessionStorage` and must be given another */
function storageOf({ storage }: GatewayClientOptions): SignInStorage {
  const found = storage ?? (typeof sessionStorage === 'undefined' ? undefined : sessionStorage);
  if (!found) throw new TypeError('There is no sessionStorage here: give the client a storage.');
  return found;
}
