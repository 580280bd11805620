/** Reads what the gateway sends to its upstream, strictly: whatever is not plain HTTP/1.1 is a finding. */

export interface Call {
  readonly method: string;
  /** Byte for byte as it was sent. */
  readonly target: string;
  /** By their names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  /** One character a byte. */
  readonly body: string;
}

export class MalformedCall extends Error {}

const REQUEST_LINE = /^([A-Z]+) (\/[\x21-\x7e]*) HTTP\/1\.1$/;
const HEADER_LINE = /^([A-Za-z0-9-]+): ?([\t\x20-\x7e\x80-\xff]*)$/;
const CHUNK = /^([0-9a-f]{1,8})\r\n/i;

/** The call at the beginning and what follows it; undefined when it has not come as a whole. */
export function readCall(received: string): { readonly call: Call; readonly rest: string } | undefined {
  const end = received.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [requestLine = '', ...lines] = received.slice(0, end).split('\r\n');
  const [, method, target] = REQUEST_LINE.exec(requestLine) ?? [];
  if (method === undefined || target === undefined)
    throw new MalformedCall(`request line ${JSON.stringify(requestLine)}`);
  const headers = readHeaders(lines);
  const after = received.slice(end + 4);
  const body = readBody(headers, after);
  return body && { call: { method, target, headers, body: body.bytes }, rest: after.slice(body.length) };
}

function readHeaders(lines: readonly string[]): Map<string, string> {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = HEADER_LINE.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new MalformedCall(`header ${JSON.stringify(line)}`);
    if (headers.has(name.toLowerCase())) throw new MalformedCall(`header ${name} twice`);
    headers.set(name.toLowerCase(), value);
  }
  return headers;
}

/** The body, and how many bytes it takes. */
function readBody(headers: ReadonlyMap<string, string>, after: string) {
  const declared = headers.get('content-length');
  const coding = headers.get('transfer-encoding');
  if (declared !== undefined && coding !== undefined) throw new MalformedCall('two lengths');
  if (coding !== undefined) return readChunks(after);
  if (declared !== undefined && !/^\d{1,8}$/.test(declared))
    throw new MalformedCall(`content-length ${declared}`);
  const length = Number(declared ?? 0);
  return after.length < length ? undefined : { bytes: after.slice(0, length), length };
}

function readChunks(text: string) {
  let bytes = '';
  for (let at = 0; ; ) {
    const rest = text.slice(at);
    const [line, size = ''] = CHUNK.exec(rest) ?? [];
    if (line === undefined) {
      if (rest.length > 10) throw new MalformedCall('chunk size');
      return undefined;
    }
    const length = Number.parseInt(size, 16);
    if (rest.length < line.length + length + 2) return undefined;
    bytes += rest.slice(line.length, line.length + length);
    at += line.length + length + 2;
    if (length === 0) return { bytes, length: at };
  }
}
