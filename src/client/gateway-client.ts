/** The browser's side of the gateway: sign-in, session, generation and library. Runs in pages and workers. */

import { createMadeCheck } from './being-made.ts';
import { contentPath, creationPath, publicContentPath } from './creation-path.ts';
import { type DownloadOptions, download } from './download.ts';
import {
  type GatewayConnection,
  GatewayRequestError,
  isRecord,
  networkError,
  requestData,
  sendOnly,
} from './gateway-request.ts';
import type { Generation, GenerationOptions } from './generation.ts';
import type { GenerationOrder, OwnFormPath } from './generation-order.ts';
import { connectOtherTabs } from './other-tabs.ts';
import { createPageSignIn, loadCodeFlow } from './page-sign-in.ts';
import { generate } from './recovering-generation.ts';
import { repeatWhileTemporary } from './repetition.ts';
import type { IdentityProvider, SignInStorage } from './sign-in.ts';
import { sendUpstream, type UpstreamInit } from './upload.ts';
import type { SandboxData, UpstreamData } from './upstream-data.ts';
import { beforeStall } from './watched-body.ts';

/** Exists in a page, but not in a worker or on a server. */
declare const sessionStorage: SignInStorage | undefined;

/** Longer than the gateway takes with a refresh: a half-open connection itself would never report that it failed. */
const SESSION_CHECK_MS = 60_000;

export interface GatewayClientOptions<Creation = unknown> {
  /** The gateway's origin, such as `https://api.studio.example`; on the same site as the page, for its cookies. */
  readonly baseUrl: string;
  /** The language of error messages, as a language tag; by default, or when undefined, the browser's preference. */
  readonly language?: () => string | undefined;
  /** Called for each response with which the gateway has renewed the session. */
  readonly onRefresh?: () => void;
  /**
   * Called when another tab has signed in, perhaps with another account, or out: check the session then. Keeps the page's
   * channel to other tabs open.
   */
  readonly onSessionChange?: () => void;
  /**
   * Whether the upstream still makes a creation, as far as its record says so. By default, whether its `status` is
   * `generating`.
   */
  readonly isBeingMade?: (creation: Creation) => boolean;
  /** By default, the page's `fetch`. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Stores a sign-in while the user is at the identity provider; by default, the tab's `sessionStorage`. */
  readonly storage?: SignInStorage;
}

/** Whether there is a session, and the upstream's profile of its user, if it has one. */
export type SessionCheck<Profile = SandboxData['profile']> =
  | { readonly authenticated: false; readonly profile?: undefined }
  | { readonly authenticated: true; readonly profile?: Profile };

/**
 * The app says which forms the data of its upstream have: `createGatewayClient<MyData>(...)`. An object that wraps them in
 * `data` is removed, and an empty response is undefined. Every method that calls the gateway throws
 * {@link GatewayRequestError}.
 *
 * Signing in and generating need a secure context, such as `https:` or `localhost`.
 */
export interface GatewayClient<Data extends UpstreamData = SandboxData> {
  /** Returns the identity provider's address for the user; verifier and state stay in the tab's storage. */
  beginSignIn(provider: IdentityProvider): Promise<string>;
  /**
   * Completes a sign-in when this address, by default the page's own, is a response of the identity provider. Removes
   * the response from the page's own address, and thereby from the history. After a failure, begin a new sign-in. Called
   * again meanwhile, as by React's StrictMode, it has the outcome of the first call.
   *
   * @returns false when the address is no such response
   * @throws SignInError when the response is a refusal, or does not belong to a sign-in of this tab
   * @throws TypeError when the address is not absolute
   */
  completeSignIn(address?: string): Promise<boolean>;
  /**
   * After a sign-in that is being completed. Never from a cache. A session that the upstream has ended counts as none.
   * Fails after a minute, as without a response.
   */
  session(): Promise<SessionCheck<Data['profile']>>;
  models(): Promise<readonly Data['model'][]>;
  /**
   * Orders a track, and returns as soon as its audio begins. While no audio has arrived, a break repeats the order under
   * the same key; afterwards, the rest is read from the creation. The upstream has to honour the key, and to serve ranges.
   *
   * @throws GatewayRequestError when the order is refused before any break
   * @throws RecoveryError when it is refused after a break, or the break lasts too long
   * @throws NotAudioError when the response is text, JSON or HTML
   * @throws the signal's reason, by default an `AbortError`, when aborted
   */
  generate(order: GenerationOrder, options?: GenerationOptions): Promise<Generation>;
  /** Orders a track in the upstream's own form. Without a path, the gateway refuses what has not the fields above. */
  generate(
    order: object,
    options: GenerationOptions & { readonly path: OwnFormPath | undefined },
  ): Promise<Generation>;
  creations(): Promise<readonly Data['creation'][]>;
  creation(creationId: string): Promise<Data['creation']>;
  /**
   * Waits until all audio of a creation can be read, and returns the creation. Asks again while `isBeingMade`, or while
   * the upstream responds with 409 for the audio, and after failures that may pass, for at most ten minutes.
   */
  awaitCreation(creationId: string, options?: { readonly signal?: AbortSignal }): Promise<Data['creation']>;
  setVisibility(creationId: string, isPublic: boolean): Promise<Data['creation']>;
  rename(creationId: string, title: string): Promise<Data['creation']>;
  /** Not before its audio is complete. */
  delete(creationId: string): Promise<void>;
  /** For an `audio` element with `crossorigin="use-credentials"`. */
  contentUrl(creationId: string): string;
  /** For an `audio` element with `crossorigin="anonymous"`; plays without a session. */
  publicContentUrl(creationId: string): string;
  /**
   * Requests any other path below the upstream's `/v1/`, in which ids must be encoded. The status is 2xx. A body that the
   * gateway could not repeat after a renewal of the session is sent once more.
   */
  upstream(path: `/v1/${string}`, init?: UpstreamInit): Promise<Response>;
  /** Reads such a path as a whole, and tells how much of it is here. */
  download(path: `/v1/${string}`, options?: DownloadOptions): Promise<Blob>;
  /** Requests such a path with GET, and parses the JSON of its response. */
  upstreamData<Result = unknown>(path: `/v1/${string}`): Promise<Result>;
  signOut(): Promise<void>;
}

export function createGatewayClient<Data extends UpstreamData = SandboxData>(
  options: GatewayClientOptions<Data['creation']>,
): GatewayClient<Data> {
  const connection: GatewayConnection = {
    baseUrl: options.baseUrl.replace(/\/+$/, ''),
    language: options.language ?? (() => undefined),
    onRefresh: options.onRefresh ?? (() => {}),
    // A browser's `fetch` refuses to be called as the method of another object.
    fetch: (url, init) => (options.fetch ?? fetch)(url, init),
  };
  const upstreamData = <Result>(path: string, init?: RequestInit) =>
    requestData<Result>(connection, `/api/upstream${path}`, init);
  const change = async (creationId: string, fields: object) =>
    upstreamData<Data['creation']>(creationPath(creationId), {
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(fields),
    });
  const playbackUrl = (path: string) => `${connection.baseUrl}/api/upstream${path}`;
  const madeCheck = createMadeCheck(connection, options.isBeingMade);
  const otherTabs = connectOtherTabs(connection.baseUrl, options.onSessionChange);
  const signIn = createPageSignIn(connection, () => storageOf(options), otherTabs.tell);

  return {
    beginSignIn: signIn.begin,
    completeSignIn: signIn.complete,
    async session() {
      await signIn.whenOver();
      const check = await checkSession<Data['profile']>(connection);
      // So that nobody waits for it after pressing the button. A failure shows then.
      if (!check.authenticated) loadCodeFlow().catch(() => {});
      return check;
    },
    models: () => requestData(connection, '/api/music/models'),
    generate: (order: object, generationOptions?: GenerationOptions) =>
      generate(connection, madeCheck, order, generationOptions),
    creations: () => upstreamData('/v1/music/creations'),
    creation: async (creationId) => upstreamData(creationPath(creationId)),
    awaitCreation: (creationId, init = {}) =>
      repeatWhileTemporary(async () => {
        await madeCheck.checkRecord(creationId, init);
        const content = `/api/upstream${contentPath(creationId)}`;
        // A record's form is the upstream's own; the status of its audio says in every upstream whether it is complete.
        await sendOnly(connection, content, { ...init, method: 'HEAD' });
        return upstreamData(creationPath(creationId), init);
      }, init),
    setVisibility: (creationId, isPublic) => change(creationId, { is_public: isPublic }),
    rename: (creationId, title) => change(creationId, { title }),
    async delete(creationId) {
      // Also when the page is closed before the response.
      await sendOnly(connection, `/api/upstream${creationPath(creationId)}`, {
        method: 'DELETE',
        keepalive: true,
      });
    },
    contentUrl: (creationId) => playbackUrl(contentPath(creationId)),
    publicContentUrl: (creationId) => playbackUrl(publicContentPath(creationId)),
    upstream: (path, init) => sendUpstream(connection, `/api/upstream${path}`, init),
    download: (path, init) => download(connection, `/api/upstream${path}`, init),
    upstreamData: (path) => upstreamData(path),
    async signOut() {
      // The response clears the cookies, also when the page is closed before it.
      await sendOnly(connection, '/api/auth/logout', { method: 'POST', keepalive: true });
      otherTabs.tell();
    },
  };
}

async function checkSession<Profile>(connection: GatewayConnection): Promise<SessionCheck<Profile>> {
  const attempt = new AbortController();
  const init = { cache: 'no-store', signal: attempt.signal } as const;
  const request = requestData<Profile>(connection, '/api/auth/session', init);
  try {
    const body = await beforeStall(request, SESSION_CHECK_MS, (stall) => attempt.abort(stall));
    if (isRecord(body) && body['authenticated'] === false) return { authenticated: false };
    return { authenticated: true, ...(!isBareState(body) && { profile: body }) };
  } catch (error) {
    if (error instanceof GatewayRequestError && error.sessionHasEnded) return { authenticated: false };
    throw attempt.signal.aborted ? networkError(error, undefined, true) : error;
  }
}

/** Whether this is the gateway's own response, for an upstream without profiles, and not a profile. */
function isBareState(body: unknown): boolean {
  if (body === undefined) return true;
  return isRecord(body) && body['authenticated'] === true && Object.keys(body).length === 1;
}

/** @throws TypeError in a worker, which has no `sessionStorage`, when the options have no storage */
function storageOf({ storage }: GatewayClientOptions): SignInStorage {
  const found = storage ?? (typeof sessionStorage === 'undefined' ? undefined : sessionStorage);
  if (!found) throw new TypeError('There is no sessionStorage here: give the client a storage.');
  return found;
}
