/** A request whose body is watched while it is sent, which browsers offer by `XMLHttpRequest` alone. */

export interface UploadProgress {
  readonly sentBytes: number;
  readonly totalBytes: number;
}

/** The used part of `XMLHttpRequest`. */
interface WatchedRequest {
  readonly upload: {
    onprogress: ((event: { readonly loaded: number; readonly total: number }) => void) | null;
  };
  readonly status: number;
  readonly statusText: string;
  readonly response: Blob | null;
  responseType: string;
  withCredentials: boolean;
  onload: (() => void) | null;
  onloadend: (() => void) | null;
  open(method: string, url: string): void;
  setRequestHeader(name: string, value: string): void;
  getAllResponseHeaders(): string;
  send(body: RequestInit['body']): void;
  abort(): void;
}

/** Exists in pages and in most workers. */
declare const XMLHttpRequest: (new () => WatchedRequest) | undefined;

export function canWatch(): boolean {
  return typeof XMLHttpRequest !== 'undefined';
}

/**
 * Does what `fetch` does with these fields of `init`: method, headers, a body that is no stream, credentials and signal.
 * The response comes as a whole.
 */
export function fetchWatched(
  url: string,
  { method = 'GET', headers, body, credentials, signal }: RequestInit,
  onProgress: (progress: UploadProgress) => void,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    if (!XMLHttpRequest) throw new TypeError('There is no XMLHttpRequest here.');
    signal?.throwIfAborted();
    const request = new XMLHttpRequest();
    request.open(method, url);
    request.responseType = 'blob';
    request.withCredentials = credentials === 'include';
    for (const [name, value] of new Headers(headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = ({ loaded, total }) => onProgress({ sentBytes: loaded, totalBytes: total });
    const abort = () => request.abort();
    signal?.addEventListener('abort', abort);
    request.onload = () => resolve(responseOf(request));
    request.onloadend = () => {
      signal?.removeEventListener('abort', abort);
      // Ignored after a response.
      reject(signal?.reason ?? new TypeError('The request failed.'));
    };
    request.send(body);
  });
}

function responseOf(request: WatchedRequest): Response {
  const { status, statusText, response } = request;
  const lines = request.getAllResponseHeaders().split('\r\n').filter(Boolean);
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  // Some statuses allow no body, not even an empty one.
  return new Response(response?.size ? response : null, { status, statusText, headers });
}
