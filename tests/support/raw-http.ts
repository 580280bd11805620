/** Sends bytes that no HTTP client would send, and gives back all that comes. */

export interface RawAnswer {
  /** 0 when the connection was closed without an answer. */
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

/** The request must ask for the connection to be closed; the promise settles when it is. */
export function rawRequest(port: number, bytes: string): Promise<RawAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<RawAnswer>();
  let received = '';
  Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      open: (socket) => void socket.write(Buffer.from(bytes, 'latin1')),
      data: (_, data) => {
        received += data.toString('latin1');
      },
      close: () => resolve(parse(received)),
      error: (_, error) => reject(error),
    },
  }).catch(reject);
  return promise;
}

function parse(text: string): RawAnswer {
  const end = text.indexOf('\r\n\r\n');
  const [statusLine = '', ...lines] = text.slice(0, end < 0 ? text.length : end).split('\r\n');
  const headers = new Headers();
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon > 0) headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  return {
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1] ?? 0),
    headers,
    body: end < 0 ? '' : text.slice(end + 4),
  };
}
