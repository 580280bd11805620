import { describe, expect, it } from 'bun:test';
import net from 'node:net';
import { type MessageKey, messages } from '../../../src/gateway/http/messages.ts';
import { eventually } from '../../support/eventually.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import type { Respond } from '../../support/scripted-upstream.ts';
import {
  accept,
  cookies,
  ME,
  pair,
  REFRESH,
  reply,
  scriptSignIn,
  sentBack,
  signIn,
} from '../../support/session-calls.ts';
import { rawCall, sharedWorld } from '../../support/shared-world.ts';
import {
  ACCESS_ONLY,
  CLOSED,
  envelopeMessage,
  REFRESH_ONLY,
  type RequestOptions,
  SIGNED_IN,
  startWorld,
  type World,
} from '../../support/world.ts';

const PATH = '/api/upstream/v1/library';
const UPLOAD = 'POST /v1/library';
const LIMIT_BYTES = 3_000_000;
/** Of many different bytes, so that a lost or repeated part shows. */
const FILE = Uint8Array.from({ length: LIMIT_BYTES }, (_, index) => (index * 7919) >> 5);

const world = sharedWorld({ MAX_UPLOAD_BYTES: String(LIMIT_BYTES) });

/** A body whose length fetch does not know beforehand. */
async function* inChunks(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += 70_000) yield bytes.subarray(start, start + 70_000);
}

function upload(to: World, options: RequestOptions = {}): Promise<Response> {
  const headers = { 'content-type': 'audio/wav' };
  return to.request(PATH, { method: 'POST', cookie: SIGNED_IN, headers, body: FILE, ...options });
}

async function expectFree({ admission }: Pick<World, 'admission'>): Promise<void> {
  const inUse = () => [admission.relayedBodies.usedBytes, admission.streams.inUse, admission.perSession.size];
  await eventually(() => inUse().every((each) => each === 0), 'all reservations to be given back');
}

describe.each([
  ['declared', () => FILE],
  ['in chunks', () => inChunks(FILE)],
])('an upload, %s', (framing, body) => {
  it.each(['POST', 'PUT', 'PATCH'])(
    'by %s arrives once and whole, after a call that tries the token',
    async (method) => {
      const call = `${method} /v1/library`;
      world.upstream.on(ME, reply(404)).on(call, reply(201));
      expect((await upload(world, { method, body: body() })).status).toBe(201);
      expect(world.upstream.calls).toEqual([ME, call]);
      const { bytes, headers } = world.upstream.last(call);
      expect(Buffer.from(bytes).equals(FILE)).toBeTrue();
      const length = framing === 'declared' ? String(LIMIT_BYTES) : null;
      expect([headers.get('content-length'), headers.get('content-type')]).toEqual([length, 'audio/wav']);
      await expectFree(world);
    },
  );
});

it.each([
  ['multipart', 'multipart/form-data; boundary=x', 201],
  ['without a type', undefined, 201],
  ['text with json in its name', 'text/x-json', 201],
  ['JSON', 'application/json; charset=utf-8', 413],
  ['JSON of another kind', 'application/vnd.api+json', 413],
  ['URL-encoded', 'application/x-www-form-urlencoded', 413],
] as const)('a long body is an upload: %s', async (_, type, status) => {
  world.upstream.on(ME, reply(200, {})).on(UPLOAD, reply(201));
  const headers = type === undefined ? {} : { 'content-type': type };
  const response = await upload(world, { headers, body: new Blob([FILE]) });
  expect([response.status, world.upstream.calls]).toEqual([status, status === 201 ? [ME, UPLOAD] : []]);
});

it('above the limit is refused at once when it is declared, and breaks the connection to the upstream otherwise', async () => {
  await using stack = new AsyncDisposableStack();
  let received = '';
  const broken = Promise.withResolvers<void>();
  const upstream = stack.use(
    await startRawUpstream((socket, first) => {
      if (first.startsWith('GET')) return void socket.end('HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n');
      received = first;
      socket.on('data', (data) => {
        received += data.toString('latin1');
      });
      socket.on('close', () => broken.resolve());
    }),
  );
  const own = stack.use(startWorld({ UPSTREAM_URL: upstream.url, MAX_UPLOAD_BYTES: String(LIMIT_BYTES) }));
  const body = new Uint8Array(LIMIT_BYTES + 1);
  const declared = await upload(own, { body });
  expect(await envelopeMessage(declared, 413)).toBe(messages.en.uploadTooLarge);
  expect(upstream.connections()).toBe(0);
  const inParts = await upload(own, { body: inChunks(body) });
  expect(await envelopeMessage(inParts, 413)).toBe(messages.en.uploadTooLarge);
  await broken.promise;
  expect(received).toContain('Transfer-Encoding: chunked');
  expect(received).not.toEndWith('\r\n0\r\n\r\n');
  await expectFree(own);
});

it('above 200 MB is refused by the gateway itself, in its envelope', async () => {
  await using own = startWorld();
  const refused = await rawCall(own, `POST ${PATH}`, { lines: [`Content-Length: ${200 * 1024 ** 2 + 1}`] });
  const message = messages.en.uploadTooLarge;
  expect([refused.status, JSON.parse(refused.body)]).toEqual([413, { error: { message } }]);
});

it('of more than 2 MB is refused where there are no uploads', async () => {
  await using own = startWorld({ MAX_UPLOAD_BYTES: '0' });
  for (const body of [FILE, inChunks(FILE)])
    expect(await envelopeMessage(await upload(own, { body }), 413)).toBe(messages.en.bodyTooLarge);
});

it.each([
  ['an endpoint that is new', []],
  ['one that responds briefly', [201, 201]],
])('an upload by somebody with a long profile, to %s, leaves nothing reserved', async (_, earlier) => {
  await using own = startWorld();
  for (const status of [...earlier, 404]) {
    own.upstream.on(ME, reply(200, { name: 'x'.repeat(30_000) })).on(UPLOAD, reply(status));
    expect((await upload(own)).status).toBe(status);
  }
  await own.settled();
  const { inUse, expected } = own.admission.ledger;
  expect([inUse, expected]).toEqual([0, 0]);
});

/** What the upstream and the browser see: the calls, the status, the cookies that were set, and what lets a client repeat. */
interface Seen {
  readonly calls: readonly string[];
  readonly status: number;
  readonly set?: string;
  readonly mayRepeat?: boolean;
  readonly text?: MessageKey;
}

describe('the token of an upload', () => {
  const expired = reply(401);
  const renewed = reply(200, pair(2));
  const once = { [UPLOAD]: accept('access-2', reply(201)) };

  it.each<[string, string, Record<string, Respond>, Seen]>([
    [
      'has expired before it',
      SIGNED_IN,
      { [ME]: accept('access-2'), [REFRESH]: renewed, ...once },
      { calls: [ME, REFRESH, ME, UPLOAD], status: 201, set: cookies(2) },
    ],
    [
      'is missing',
      REFRESH_ONLY,
      { [ME]: accept('access-2'), [REFRESH]: renewed, ...once },
      { calls: [REFRESH, ME, UPLOAD], status: 201, set: cookies(2) },
    ],
    [
      'expires while it is sent',
      SIGNED_IN,
      { [ME]: reply(200, {}), [UPLOAD]: expired, [REFRESH]: renewed },
      {
        ...{ calls: [ME, UPLOAD, REFRESH], status: 401, set: cookies(2) },
        ...{ mayRepeat: true, text: 'uploadNotRepeated' },
      },
    ],
    [
      'is new, and refused all the same',
      SIGNED_IN,
      { [ME]: accept('access-2'), [REFRESH]: renewed, [UPLOAD]: expired },
      { calls: [ME, REFRESH, ME, UPLOAD], status: 401, set: cookies(2) },
    ],
    [
      'cannot be renewed, because the session is over',
      SIGNED_IN,
      { [ME]: expired, [REFRESH]: expired },
      {
        ...{ calls: [ME, REFRESH], status: 401, text: 'sessionEnded' },
        set: 'svc_music_access=; svc_music_refresh=',
      },
    ],
    [
      'cannot be renewed, because there is no refresh token',
      ACCESS_ONLY,
      { [ME]: expired },
      { calls: [ME], status: 401 },
    ],
    [
      'is not judged by the session check',
      SIGNED_IN,
      { [ME]: reply(500), [UPLOAD]: reply(201) },
      { calls: [ME, UPLOAD], status: 201 },
    ],
  ])('%s', async (_, cookie, script, { calls, status, set = '', mayRepeat = false, text }) => {
    await using own = startWorld({ MAX_UPLOAD_BYTES: String(LIMIT_BYTES) });
    for (const [call, respond] of Object.entries(script)) own.upstream.on(call, respond);
    const response = await upload(own, { cookie });
    expect([own.upstream.calls, response.status]).toEqual([[...calls], status]);
    expect(sentBack(response)).toBe(set);
    expect([response.headers.get('retry-after'), response.headers.has('proxy-status')]).toEqual([
      mayRepeat ? '0' : null,
      mayRepeat,
    ]);
    if (text) expect(await envelopeMessage(response, status)).toBe(messages.en[text]);
    const files = own.upstream.received.filter(({ target }) => target === '/v1/library');
    expect(files).toHaveLength(calls.filter((call) => call === UPLOAD).length);
    for (const { bytes } of files) expect(Buffer.from(bytes).equals(FILE)).toBeTrue();
    await expectFree(own);
  });

  it('is refused by an encoded response, which arrives decoded', async () => {
    await using own = startWorld();
    const headers = { 'content-encoding': 'gzip', 'content-type': 'application/json' };
    const refusal = Bun.gzipSync(JSON.stringify({ message: 'expired' }));
    own.upstream.on(ME, () => new Response(refusal, { status: 401, headers }));
    const response = await upload(own, { cookie: ACCESS_ONLY });
    expect([response.status, await response.json()]).toEqual([401, { message: 'expired' }]);
  });

  it('cannot be renewed now: the session stays', async () => {
    await using own = startWorld({ MAX_UPLOAD_BYTES: String(LIMIT_BYTES), TIMEOUT_SIGN_IN_MS: '50' });
    own.upstream.on(ME, expired).on(REFRESH, () => new Promise(() => {}));
    const response = await upload(own);
    expect([response.status, sentBack(response), response.headers.get('proxy-status')]).toEqual([
      ...[401, '', 'music-gateway; error=http_response_timeout'],
    ]);
    // On a busy machine the refresh may be late before it has reached the upstream.
    expect(own.upstream.calls).not.toContain(UPLOAD);
  });
});

it('an upload with sealed cookies arrives once, and the renewed ones are sealed', async () => {
  await using own = startWorld({ COOKIE_KEYS: Buffer.alloc(32, 7).toString('base64url') });
  scriptSignIn(own);
  const cookie = sentBack(await signIn(own));
  own.upstream.on(ME, accept('access-2')).on(REFRESH, reply(200, pair(2)));
  own.upstream.on(UPLOAD, accept('access-2', reply(201)));
  const response = await upload(own, { cookie });
  expect([response.status, own.upstream.calls.slice(2)]).toEqual([201, [ME, REFRESH, ME, UPLOAD]]);
  expect(sentBack(response)).toMatch(/^svc_music_access=ey\S+; svc_music_refresh=ey\S+$/);
});

it('an upload that the upstream breaks off in the middle is a 502', async () => {
  await using stack = new AsyncDisposableStack();
  const upstream = stack.use(
    await startRawUpstream((socket, first) => {
      if (first.startsWith('GET')) socket.end('HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n');
      else socket.resetAndDestroy();
    }),
  );
  const own = stack.use(startWorld({ UPSTREAM_URL: upstream.url }));
  for (const body of [FILE, inChunks(FILE)]) {
    const response = await upload(own, { body });
    expect(await envelopeMessage(response, 502)).toBe(messages.en.upstreamUnreachable);
    expect(response.headers.get('proxy-status')).toContain('error=connection_terminated');
  }
  // Of each the token was tried first, and none was sent again.
  expect(upstream.connections()).toBe(4);
  await expectFree(own);
});

it('an upload that is longer than it was declared is cut off where its client said', async () => {
  world.upstream.on(ME, reply(200, {})).on(UPLOAD, reply(201));
  const lines = ['Content-Type: audio/wav', 'Content-Length: 2900000'];
  const body = Buffer.from(FILE).toString('latin1');
  const { status } = await rawCall(world, `POST ${PATH}`, { lines, body });
  expect(status).toBe(201);
  expect(Buffer.from(world.upstream.last(UPLOAD).bytes).equals(FILE.subarray(0, 2_900_000))).toBeTrue();
  await expectFree(world);
});

it.each([
  ['refuses it before it has arrived', 413, 'no thanks'],
  ['is content with the first part', 200, 'x'.repeat(400_000)],
])('an upstream that %s is heard, and gets no end of the body', async (_, status, text) => {
  await using stack = new AsyncDisposableStack();
  let sent = 0;
  const closed = Promise.withResolvers<void>();
  const upstream = stack.use(
    await startRawUpstream((socket, first) => {
      if (first.startsWith('GET')) return void socket.end('HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n');
      socket.on('data', (data) => {
        sent += data.length;
      });
      socket.on('close', () => closed.resolve());
      socket.write(`HTTP/1.1 ${status} X\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
    }),
  );
  const own = stack.use(startWorld({ UPSTREAM_URL: upstream.url }));
  const { port } = own;
  // Sends one part, and the rest only after the response.
  const socket = net.connect(port, '127.0.0.1');
  stack.defer(() => void socket.destroy());
  let received = '';
  socket.on('data', (data) => {
    received += data.toString('latin1');
  });
  const lines = ['Host: x', 'Origin: http://studio.test', `Cookie: ${SIGNED_IN}`, 'Content-Length: 3000000'];
  socket.write(`POST ${PATH} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
  socket.write(FILE.subarray(0, 100_000));
  await eventually(() => received.startsWith(`HTTP/1.1 ${status}`), 'the head of the response');
  await closed.promise;
  expect(sent).toBeLessThan(200_000);
  await eventually(() => received.replace(/\r\n[0-9a-f]+\r\n/g, '').includes(text.slice(0, 9)), 'its body');
  // The connection can be used again.
  socket.write(FILE.subarray(100_000));
  received = '';
  socket.write('GET /api/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  await eventually(() => received.includes('"status":"ok"'), 'the next response');
  await expectFree(own);
});

it('an upstream that responds in the middle of it, and then stands still, is late', async () => {
  await using stack = new AsyncDisposableStack();
  const upstream = stack.use(
    await startRawUpstream((socket, first) => {
      if (first.startsWith('GET')) socket.end('HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n');
      else socket.write('HTTP/1.1 413 X\r\nContent-Length: 100\r\n\r\nsome');
    }),
  );
  const own = stack.use(startWorld({ UPSTREAM_URL: upstream.url, TIMEOUT_STREAM_MS: '1000' }));
  const lines = ['Content-Type: audio/wav', 'Content-Length: 3000000'];
  const body = Buffer.from(FILE.subarray(0, 100_000)).toString('latin1');
  const { status } = await rawCall(own, `POST ${PATH}`, { lines, body });
  expect(status).toBe(502);
  await expectFree(own);
});

it('whose client leaves breaks the call to the upstream', async () => {
  world.upstream.on(ME, reply(200, {}));
  await using stack = new AsyncDisposableStack();
  let received = '';
  const broken = Promise.withResolvers<void>();
  const upstream = stack.use(
    await startRawUpstream((socket, first) => {
      if (first.startsWith('GET')) return void socket.end('HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n');
      socket.on('data', (data) => {
        received += data.toString('latin1');
      });
      socket.on('close', () => broken.resolve());
    }),
  );
  const own = stack.use(startWorld({ UPSTREAM_URL: upstream.url }));
  for (const framing of ['Content-Length: 3000000', 'Transfer-Encoding: chunked']) {
    received = '';
    const socket = net.connect(own.port, '127.0.0.1');
    const lines = ['Host: x', 'Origin: http://studio.test', `Cookie: ${SIGNED_IN}`, framing];
    socket.write(`POST ${PATH} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    const part = Buffer.from(FILE.subarray(0, 2_500_000)).toString('latin1');
    const framed = framing.startsWith('C') ? part : `${part.length.toString(16)}\r\n${part}\r\n`;
    socket.write(framed, 'latin1');
    await eventually(() => received.length > 1_000_000, 'the upstream to get some of it');
    socket.destroy();
    await broken.promise;
    expect(received).not.toEndWith('\r\n0\r\n\r\n');
  }
  await expectFree(own);
});

it('to an upstream that cannot be reached is a 502', async () => {
  await using own = startWorld({ UPSTREAM_URL: CLOSED });
  expect(await envelopeMessage(await upload(own), 502)).toBe(messages.en.upstreamUnreachable);
  await expectFree(own);
});
