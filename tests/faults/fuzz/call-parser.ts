/** Parses what the gateway sends to its upstream, strictly: whatever is not plain HTTP/1.1 is a finding. */

import { MalformedHttp, parseChunks } from '../../support/raw-http.ts';

export interface Call {
  readonly method: string;
  /** Byte for byte as it was sent. */
  readonly target: string;
  /** By their names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  /** One character per byte. */
  readonly body: string;
}

const REQUEST_LINE = /^([A-Z]+) (\/[\x21-\x7e]*) HTTP\/1\.1$/;
const HEADER_LINE = /^([A-Za-z0-9-]+): ?([\t\x20-\x7e\x80-\xff]*)$/;

/**
 * @returns the first call and what follows it; undefined until it is complete
 * @throws MalformedHttp
 */
export function parseCall(received: string): { readonly call: Call; readonly rest: string } | undefined {
  const end = received.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [requestLine = '', ...lines] = received.slice(0, end).split('\r\n');
  const [, method, target] = REQUEST_LINE.exec(requestLine) ?? [];
  if (method === undefined || target === undefined)
    throw new MalformedHttp(`request line ${JSON.stringify(requestLine)}`);
  const headers = parseHeaders(lines);
  const after = received.slice(end + 4);
  const body = parseBody(headers, after);
  return body && { call: { method, target, headers, body: body.text }, rest: after.slice(body.length) };
}

function parseHeaders(lines: readonly string[]): Map<string, string> {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = HEADER_LINE.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new MalformedHttp(`header ${JSON.stringify(line)}`);
    if (headers.has(name.toLowerCase())) throw new MalformedHttp(`header ${name} twice`);
    headers.set(name.toLowerCase(), value);
  }
  return headers;
}

function parseBody(headers: ReadonlyMap<string, string>, after: string) {
  const declared = headers.get('content-length');
  const coding = headers.get('transfer-encoding');
  if (declared !== undefined && coding !== undefined) throw new MalformedHttp('two lengths');
  if (coding !== undefined) return parseChunks(after);
  if (declared !== undefined && !/^\d{1,8}$/.test(declared))
    throw new MalformedHttp(`content-length ${declared}`);
  const length = Number(declared ?? 0);
  return after.length < length ? undefined : { text: after.slice(0, length), length };
}
