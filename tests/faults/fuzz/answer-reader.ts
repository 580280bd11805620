/** Reads the gateway's answers off a connection. */

export interface Answer {
  readonly status: number;
  /** Names in lower case, in their order. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Without its chunks; one character a byte. */
  readonly body: string;
  /** The answer as it came. */
  readonly bytes: string;
}

export interface AnswersRead {
  readonly answers: readonly Answer[];
  /** What follows the last complete answer. */
  readonly rest: string;
}

/** The complete answers; interim ones (1xx) are left out. `isHead`: the first of them has no body. */
export function readAnswers(received: string, isHead: boolean): AnswersRead {
  const answers: Answer[] = [];
  let rest = received;
  for (;;) {
    const answer = readAnswer(rest, isHead && answers.length === 0);
    if (!answer) return { answers, rest };
    rest = rest.slice(answer.bytes.length);
    if (answer.status >= 200) answers.push(answer);
  }
}

export function headerOf({ headers }: Answer, name: string): string | undefined {
  return headers.find(([each]) => each === name)?.[1];
}

function readAnswer(received: string, isHead: boolean): Answer | undefined {
  const end = received.indexOf('\r\n\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(received)?.[1] ?? 0);
  if (end < 0 || status === 0) return undefined;
  const lines = received.slice(0, end).split('\r\n').slice(1);
  const headers = lines.map((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
  });
  const hasNoBody = isHead || status < 200 || status === 204 || status === 304;
  const body = hasNoBody
    ? { text: '', length: 0 }
    : readBody(status, new Map(headers), received.slice(end + 4));
  return body && { status, headers, body: body.text, bytes: received.slice(0, end + 4 + body.length) };
}

function readBody(status: number, headers: ReadonlyMap<string, string>, after: string) {
  if (headers.get('transfer-encoding') === 'chunked') return readChunks(after);
  const declared = headers.get('content-length');
  // To an HTTP/1.0 client a streamed body ends with the connection.
  if (declared === undefined && status < 300) return { text: after, length: after.length };
  const length = Number(declared ?? 0);
  return after.length < length ? undefined : { text: after.slice(0, length), length };
}

function readChunks(after: string) {
  let text = '';
  for (let at = 0; ; ) {
    const lineEnd = after.indexOf('\r\n', at);
    const size = Number.parseInt(after.slice(at, lineEnd), 16);
    const start = lineEnd + 2;
    if (lineEnd < 0 || after.length < start + size + 2) return undefined;
    text += after.slice(start, start + size);
    at = start + size + 2;
    if (size === 0) return { text, length: at };
  }
}
