import { describe, expect, it, onTestFinished } from 'bun:test';
import { type Respond, rejection, respond, stubGateway } from './gateway-stub.ts';

const PATH = '/v1/music/references';
const RENEWED = { 'retry-after': '0', 'proxy-status': 'music-gateway; received-status=401; details="x"' };
const renewed = respond(401, RENEWED, '{"error":{"message":"Send the file again."}}');
const BYTES = Uint8Array.of(0, 255, 128, 10);

function streamOf(...pieces: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
}

function form(): FormData {
  const body = new FormData();
  body.set('file', new Blob([BYTES]), 'a.wav');
  return body;
}

/** What is sent; of a form, its file. */
async function contentOf(body: RequestInit['body']): Promise<number[]> {
  const sent = new Response(body ?? null);
  const content = body instanceof FormData ? new Response((await sent.formData()).get('file')) : sent;
  return [...(await content.bytes())];
}

describe('a body that the gateway could not repeat after a renewal is sent again, once:', () => {
  it.each<[string, () => RequestInit['body'], Uint8Array?]>([
    ['a Blob', () => new Blob([BYTES])],
    ['a typed array', () => BYTES],
    ['a stream, collected', () => streamOf(BYTES.slice(0, 1), BYTES.slice(1))],
    ['a FormData', form],
    ['a text', () => 'text', Buffer.from('text')],
  ])('%s', async (_, body, expected = BYTES) => {
    const received: number[][] = [];
    const take =
      (next: Respond): Respond =>
      async (init) => {
        received.push(await contentOf(init.body));
        return next(init);
      };
    const { client } = stubGateway([renewed, respond(201)].map(take));
    const response = await client.upstream(PATH, { method: 'POST', body: body() ?? null });
    expect([response.status, received]).toEqual([201, [[...expected], [...expected]]]);
  });

  it.each([
    ['a second time', 2, [renewed, renewed], { status: 401, sessionHasEnded: false }],
    ['the session has ended', 1, [respond(401, { 'retry-after': '0' })], { sessionHasEnded: true }],
    ['at another time', 1, [respond(401, { ...RENEWED, 'retry-after': '1' })], { retryAfterSeconds: 1 }],
    [
      'the upstream wants another sign-in',
      1,
      [respond(401, { ...RENEWED, 'www-authenticate': 'Bearer error="insufficient_scope"' })],
      { challenge: { error: 'insufficient_scope' } },
    ],
    ['after another status', 1, [respond(503, RENEWED)], { status: 503 }],
  ])('not %s', async (_, times, responses, error) => {
    const { client, sent } = stubGateway(responses);
    expect(await rejection(client.upstream(PATH, { method: 'POST', body: 'x' }))).toMatchObject(error);
    expect(sent).toHaveLength(times);
  });
});

it('a stream is no longer collected when the signal is aborted, and one that fails is not sent', async () => {
  const { client, sent } = stubGateway(respond(201));
  const abort = new AbortController();
  const { signal } = abort;
  const outcome = rejection(client.upstream(PATH, { method: 'POST', body: new ReadableStream(), signal }));
  abort.abort('left');
  const failing = new ReadableStream({ pull: () => Promise.reject(new Error('no microphone')) });
  const failure = await rejection(client.upstream(PATH, { method: 'POST', body: failing }));
  expect([await outcome, failure, sent]).toEqual(['left', new Error('no microphone'), []]);
});

/** A browser's own kind of request, which the test lets go on. */
class FakeRequest {
  static readonly all: FakeRequest[] = [];
  readonly upload: { onprogress?: (event: { loaded: number; total: number }) => void } = {};
  readonly sent: unknown[] = [];
  withCredentials = false;
  status = 0;
  statusText = '';
  response: Blob | null = null;
  headers = '';
  onload = () => {};
  onloadend = () => {};
  constructor() {
    FakeRequest.all.push(this);
  }
  open(...call: unknown[]) {
    this.sent.push(...call);
  }
  setRequestHeader(name: string, value: string) {
    this.sent.push(`${name}: ${value}`);
  }
  send(body: unknown) {
    this.sent.push(body);
  }
  getAllResponseHeaders() {
    return this.headers;
  }
  abort() {
    this.onloadend();
  }
  respond(status: number, headers: Readonly<Record<string, string>> = {}, body = '') {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    Object.assign(this, { status, headers: lines.join(''), response: new Blob([body]) });
    this.onload();
    this.onloadend();
  }
}

describe('with onProgress, a request is an XMLHttpRequest', () => {
  function begin(init: RequestInit = {}) {
    Reflect.set(globalThis, 'XMLHttpRequest', FakeRequest);
    onTestFinished(() => void Reflect.deleteProperty(globalThis, 'XMLHttpRequest'));
    FakeRequest.all.length = 0;
    const { client, sent } = stubGateway(respond(500), { language: () => 'sw' });
    const seen: unknown[] = [];
    const onProgress = (progress: unknown) => seen.push(progress);
    const outcome = client.upstream(PATH, { method: 'POST', body: 'music', ...init, onProgress });
    const request = (index = 0) => {
      const found = FakeRequest.all[index];
      if (!found) throw new Error(`there are only ${FakeRequest.all.length} requests`);
      return found;
    };
    return { outcome, request, sent, seen };
  }

  it('that sends the same, tells how much of it is sent, also again, and gives the response', async () => {
    const { outcome, request, sent, seen } = begin({ headers: { 'content-type': 'audio/wav' } });
    const headers = ['accept-language: sw', 'content-type: audio/wav'];
    const call = ['POST', `http://gateway.test/api/upstream${PATH}`, ...headers, 'music'];
    request().upload.onprogress?.({ loaded: 2, total: 5 });
    request().respond(401, RENEWED);
    while (FakeRequest.all.length < 2) await Promise.resolve();
    expect([request(0).sent, request(1).sent]).toEqual([call, call]);
    expect([request().withCredentials, sent]).toEqual([true, []]);
    request(1).upload.onprogress?.({ loaded: 5, total: 5 });
    request(1).respond(201, { 'x-request-id': 'r: 1' }, '{"data":1}');
    const response = await outcome;
    expect([response.status, response.headers.get('x-request-id')]).toEqual([201, 'r: 1']);
    expect(await response.json()).toEqual({ data: 1 });
    expect(seen).toEqual([
      { sentBytes: 2, totalBytes: 5 },
      { sentBytes: 5, totalBytes: 5 },
    ]);
  });

  it('whose signal ends it, before and while it is sent', async () => {
    const early = begin({ signal: AbortSignal.abort('left') });
    expect([await rejection(early.outcome), FakeRequest.all.length]).toEqual(['left', 0]);
    const abort = new AbortController();
    const late = begin({ signal: abort.signal });
    abort.abort('changed my mind');
    expect(await rejection(late.outcome)).toBe('changed my mind');
  });

  it('that fails and is refused as one by fetch, and may have an empty response', async () => {
    const lost = begin();
    lost.request().onloadend();
    expect(await rejection(lost.outcome)).toMatchObject({ name: 'GatewayRequestError', status: 0 });
    const refused = begin();
    refused.request().respond(413, {}, '{"error":{"message":"Too large"}}');
    expect(await rejection(refused.outcome)).toMatchObject({ message: 'Too large', status: 413 });
    const empty = begin();
    empty.request().respond(204);
    expect((await empty.outcome).body).toBeNull();
  });
});

it('where there is no XMLHttpRequest, fetch sends it', async () => {
  const { client } = stubGateway(respond(201));
  const init = { method: 'POST', body: 'x', onProgress: () => {} };
  expect((await client.upstream(PATH, init)).status).toBe(201);
});
