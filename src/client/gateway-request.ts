/** Sends a request to the gateway with the session's cookies, and turns a failure into an error. */

/** Shared by the parts of a client. */
export interface GatewayConnection {
  /** Without a trailing slash. */
  readonly baseUrl: string;
  readonly language: () => string | undefined;
  readonly onRefresh: () => void;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
}

/** What another sign-in has to fulfil before the upstream accepts the request. @see RFC 9470 section 3 */
export interface Challenge {
  /** Such as `insufficient_user_authentication`, or `insufficient_scope`. */
  readonly error: string;
  readonly acrValues?: string;
  readonly maxAgeSeconds?: number;
}

/** The gateway, or the upstream behind it, has refused a request or could not be reached. */
export class GatewayRequestError extends Error {
  override readonly name = 'GatewayRequestError';
  /** 0 when there was no complete response; 2xx when the response should have been JSON and was not. */
  readonly status: number;
  /** Whether the request can be repeated without effect: it only reads, or it was certainly not carried out. */
  readonly retryIsSafe: boolean;
  /** From `Retry-After`, in seconds from now. */
  readonly retryAfterSeconds: number | undefined;
  /** False for a 401 after which the session may be renewed by the next request or was, and for one with a challenge. */
  readonly sessionHasEnded: boolean;
  /** From `WWW-Authenticate`: the session goes on, but the user has to sign in as it says. For `beginSignIn`. */
  readonly challenge: Challenge | undefined;
  /** The creation that the upstream finishes although this request was refused; null when there is none. */
  readonly creationId: string | null;
  /** Identifies the request in the gateway's log; undefined when there was no response. */
  readonly requestId: string | undefined;

  constructor(message: string, details: RequestErrorDetails) {
    super(message, { cause: details.cause });
    this.status = details.status;
    this.challenge = challengeOf(details.response);
    this.sessionHasEnded = details.status === 401 && !details.sessionGoesOn && !this.challenge;
    this.retryIsSafe = details.retryIsSafe;
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.creationId = details.response?.headers.get('x-music-creation-id') ?? null;
    this.requestId = details.response?.headers.get('x-request-id') ?? undefined;
  }
}

interface RequestErrorDetails extends Pick<GatewayRequestError, 'status' | 'retryIsSafe'> {
  readonly retryAfterSeconds?: number | undefined;
  /** Whether the gateway could not renew the session now, or has renewed it, but could not repeat the body. */
  readonly sessionGoesOn?: boolean;
  readonly response?: Response;
  readonly cause?: unknown;
}

/** The errors after which the gateway has sent nothing to the upstream. @see RFC 9209 section 2.3 */
const NEVER_SENT =
  /;\s*error=(?:connection_refused|connection_limit_reached|destination_ip_unroutable|destination_unavailable|dns_error|tls_certificate_error)\b/;

/** The gateway's entry in `Server-Timing`; a server in front of it may have added others. */
const REFRESHED = /(?:^|,)\s*refresh\s*(?:[,;]|$)/;

/** The gateway writes these parameters first, and in this order. */
const CHALLENGE = /^Bearer error="([^"]+)"(?:, acr_values="([^"]+)")?(?:, max_age="(\d+)")?/;

/** `Date.parse` alone would also accept `5, 5`. @see RFC 9110 section 5.6.7 */
const HTTP_DATE = /^\w{3}, .+ GMT$/;

/**
 * Sends a request and returns the response when its status is 2xx. The browser adds the cookies and `Origin`.
 *
 * @throws GatewayRequestError for any other status, and when there is no response
 * @throws the reason of `init.signal`, by default an `AbortError`, when it was aborted
 */
export async function sendRequest(
  connection: GatewayConnection,
  path: string,
  init: RequestInit = {},
): Promise<Response> {
  const headers = new Headers(init.headers);
  const language = connection.language();
  if (language !== undefined && !headers.has('accept-language')) headers.set('accept-language', language);
  const onlyReads = isReading(init);
  let response: Response;
  try {
    response = await connection.fetch(connection.baseUrl + path, {
      ...init,
      headers,
      credentials: 'include',
    });
  } catch (cause) {
    throw networkError(cause, init.signal, onlyReads);
  }
  if (REFRESHED.test(response.headers.get('server-timing') ?? '')) connection.onRefresh();
  if (response.ok) return response;
  throw await requestError(response, onlyReads);
}

/**
 * Does the same for a response whose status says it all. Its body is read, or the browser would show the request as
 * unfinished; what becomes of it does not matter any more.
 */
export async function sendOnly(
  connection: GatewayConnection,
  path: string,
  init: RequestInit,
): Promise<void> {
  const response = await sendRequest(connection, path, init);
  response.arrayBuffer().catch(() => {});
}

/**
 * Returns the JSON of a successful response, without the `data` in which an upstream may wrap it; undefined when the
 * response is empty, such as a 204.
 *
 * @throws GatewayRequestError as {@link sendRequest} does, and when the response breaks off or is not JSON
 */
export async function requestData<Data>(
  connection: GatewayConnection,
  path: string,
  init: RequestInit = {},
): Promise<Data> {
  const response = await sendRequest(connection, path, init);
  const retryIsSafe = isReading(init);
  const text = await response.text().catch((cause: unknown) => {
    throw networkError(cause, init.signal, retryIsSafe);
  });
  try {
    // It has the type that the app gives to the data of its upstream.
    const body = text === '' ? undefined : JSON.parse(text);
    return isRecord(body) && 'data' in body ? Object(body).data : body;
  } catch {
    // The parser's error would quote the response.
    const { status } = response;
    throw new GatewayRequestError('The response is not JSON.', { status, retryIsSafe, response });
  }
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isReading({ method = 'GET' }: RequestInit): boolean {
  return /^(?:get|head)$/i.test(method);
}

/** After an abort, the error is the signal's own reason, whatever the browser throws. */
export function networkError(
  cause: unknown,
  signal: AbortSignal | null | undefined,
  retryIsSafe: boolean,
): unknown {
  if (signal?.aborted) return signal.reason;
  return new GatewayRequestError('The connection to the gateway failed.', { status: 0, retryIsSafe, cause });
}

async function requestError(response: Response, onlyReads: boolean): Promise<GatewayRequestError> {
  const { status, headers } = response;
  // With 409 the first attempt under an Idempotency-Key may still be in flight.
  const wasRefused = status >= 400 && status < 500 && status !== 409;
  const proxyStatus = headers.get('proxy-status') ?? '';
  return new GatewayRequestError(await errorMessage(response), {
    status,
    retryIsSafe: onlyReads || wasRefused || NEVER_SENT.test(proxyStatus),
    sessionGoesOn: /;\s*(?:error=|received-status=401\b)/.test(proxyStatus),
    retryAfterSeconds: secondsUntil(headers.get('retry-after') ?? ''),
    response,
  });
}

function challengeOf(response: Response | undefined): Challenge | undefined {
  const [, error, acrValues, maxAge] = CHALLENGE.exec(response?.headers.get('www-authenticate') ?? '') ?? [];
  if (!error) return undefined;
  return { error, ...(acrValues && { acrValues }), ...(maxAge && { maxAgeSeconds: Number(maxAge) }) };
}

/** @see RFC 9110 section 10.2.3: a number of seconds, or a date */
function secondsUntil(retryAfter: string): number | undefined {
  if (/^\d+$/.test(retryAfter)) return Number(retryAfter);
  const seconds = HTTP_DATE.test(retryAfter) ? (Date.parse(retryAfter) - Date.now()) / 1000 : Number.NaN;
  return Number.isNaN(seconds) ? undefined : Math.max(0, Math.ceil(seconds));
}

/** Returns the text in `error.message` or `message`, of the gateway or of the upstream. */
async function errorMessage(response: Response): Promise<string> {
  const body: unknown = await response.json().catch(() => undefined);
  if (isRecord(body)) {
    const { error, message } = body;
    for (const text of [isRecord(error) ? error['message'] : undefined, message]) {
      if (typeof text === 'string' && text.trim() !== '') return text;
    }
  }
  return `The gateway responded with ${response.status}.`;
}
