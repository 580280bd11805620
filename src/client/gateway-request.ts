/** One request to the gateway, with the session's cookies, and the error that a failed one becomes. */

/** What the parts of a client share. */
export interface GatewayConnection {
  /** Without a trailing slash. */
  readonly baseUrl: string;
  /** The language of error messages, as a language tag; the browser's own unless it gives one. */
  readonly language: () => string | undefined;
  /** Called for each answer for which the gateway has renewed the session. */
  readonly onRefresh: () => void;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
}

/** The gateway, or the upstream behind it, has refused a request or could not be reached. */
export class GatewayRequestError extends Error {
  override readonly name = 'GatewayRequestError';
  /** 0 when there was no answer, or it broke off. */
  readonly status: number;
  /** Whether the upstream has certainly done nothing, so that the same request cannot happen twice. */
  readonly retryIsSafe: boolean;
  /** From `Retry-After`, in seconds. */
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, details: RequestErrorDetails) {
    super(message, { cause: details.cause });
    this.status = details.status;
    this.retryIsSafe = details.retryIsSafe;
    this.retryAfterSeconds = details.retryAfterSeconds;
  }
}

interface RequestErrorDetails extends Pick<GatewayRequestError, 'status' | 'retryIsSafe'> {
  readonly retryAfterSeconds?: number | undefined;
  readonly cause?: unknown;
}

/** The errors after which the gateway has sent nothing to the upstream. @see RFC 9209 section 2.3 */
const NEVER_SENT =
  /;\s*error=(?:connection_refused|connection_limit_reached|destination_ip_unroutable|dns_error|tls_certificate_error)\b/;

const WITHOUT_EFFECT = new Set(['GET', 'HEAD']);

/**
 * Sends a request and returns the answer when its status is 2xx. The browser adds the cookies and `Origin`.
 *
 * @throws GatewayRequestError for any other status, and when there is no answer
 * @throws DOMException `AbortError` when `init.signal` was aborted
 */
export async function sendRequest(
  connection: GatewayConnection,
  path: string,
  init: RequestInit = {},
): Promise<Response> {
  const headers = new Headers(init.headers);
  const language = connection.language();
  if (language !== undefined) headers.set('accept-language', language);
  const isWithoutEffect = WITHOUT_EFFECT.has(init.method ?? 'GET');
  let response: Response;
  try {
    response = await connection.fetch(connection.baseUrl + path, {
      ...init,
      headers,
      credentials: 'include',
    });
  } catch (cause) {
    throw networkError(cause, init.signal, isWithoutEffect);
  }
  if (/(?:^|,)\s*refresh\b/.test(response.headers.get('server-timing') ?? '')) connection.onRefresh();
  if (response.ok) return response;
  throw await requestError(response, isWithoutEffect);
}

/** The JSON of a successful answer, out of the `data` that an upstream may wrap it in. */
export async function readData(response: Response): Promise<unknown> {
  const body: unknown = await response.json();
  return isRecord(body) && 'data' in body ? body['data'] : body;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** An abort passes through as it is: it is what the caller asked for. */
export function networkError(
  cause: unknown,
  signal: AbortSignal | null | undefined,
  retryIsSafe: boolean,
): unknown {
  if (signal?.aborted) return cause;
  return new GatewayRequestError('The connection to the gateway failed.', { status: 0, retryIsSafe, cause });
}

async function requestError(response: Response, isWithoutEffect: boolean): Promise<GatewayRequestError> {
  const { status, headers } = response;
  const wasRefused = status >= 300 && status < 500;
  const retryAfter = Number(headers.get('retry-after') ?? Number.NaN);
  return new GatewayRequestError(await errorMessage(response), {
    status,
    retryIsSafe: isWithoutEffect || wasRefused || NEVER_SENT.test(headers.get('proxy-status') ?? ''),
    retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : undefined,
  });
}

/** The `error.message` of the gateway's envelope, or what the upstream has put there or in `message`. */
async function errorMessage(response: Response): Promise<string> {
  const body: unknown = await response.json().catch(() => undefined);
  if (isRecord(body)) {
    const { error, message } = body;
    if (isRecord(error) && typeof error['message'] === 'string') return error['message'];
    if (typeof message === 'string') return message;
  }
  return `The gateway answered ${response.status}.`;
}
