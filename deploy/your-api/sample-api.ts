/**
 * Treats orders as `deploy/your-api.md` asks for: keys, jobs, events, cancelling. It makes a tone in two seconds, and
 * trusts every token, which is also the name of its user: for its sign-in and its library, see `src/demo/sandbox`.
 */

interface Order {
  readonly body: string;
  readonly creationId: string;
  readonly track: Buffer<ArrayBuffer>;
  madeBytes: number;
  isCancelled: boolean;
  /** Resolves at the next change. */
  changed: PromiseWithResolvers<void>;
}
type Handle<Whose> = (whose: Whose, request: Bun.BunRequest) => Response | Promise<Response>;

const { PORT = '4300', PIECE_MS = '100' } = process.env;
const PIECE_BYTES = 2500;
const DAY_MS = 86_400_000;
const JSON_TYPE = { 'content-type': 'application/json' };
/** By user and key. */
const orders = new Map<string, Order>();

const refuse = (status: number, message: string) => Response.json({ error: { message } }, { status });

function ofUser(handle: Handle<string>) {
  return (request: Bun.BunRequest) => {
    const [, user] = /^Bearer (.+)$/.exec(request.headers.get('authorization') ?? '') ?? [];
    return user === undefined ? refuse(401, 'Sign in') : handle(user, request);
  };
}

/** Of the order that the path names by its key. */
function ofOrder(handle: Handle<Order>) {
  return ofUser((user, request) => {
    const order = orders.get(`${user} ${request.params['key']}`);
    return order ? handle(order, request) : refuse(404, 'There is no such order');
  });
}

async function takeOrder(user: string, request: Bun.BunRequest): Promise<Response> {
  const key = request.headers.get('idempotency-key') ?? crypto.randomUUID();
  const body = await request.text();
  const known = orders.get(`${user} ${key}`);
  if (known && known.body !== body) return refuse(422, 'This key is that of another order');
  const order = known ?? begin(`${user} ${key}`, body);
  if (order.isCancelled) return refuse(410, 'The order was cancelled');
  const headers = {
    location: `/v1/orders/${encodeURIComponent(key)}`,
    'x-music-creation-id': order.creationId,
  };
  const isJob = new URL(request.url).searchParams.has('job');
  if (isJob) return new Response(statusOf(order), { status: 202, headers: { ...JSON_TYPE, ...headers } });
  return new Response(listen(order), { headers: { 'content-type': 'audio/wav', ...headers } });
}

function begin(id: string, body: string): Order {
  const size = 20 * PIECE_BYTES;
  // The head of a WAV: 8000 samples a second, of 8 bits.
  const format = [0x45564157, 0x20746d66, 16, 0x10001, 8000, 8000, 0x80001];
  const head = Uint32Array.of(0x46464952, size + 36, ...format, 0x61746164, size);
  const tone = Buffer.alloc(size, Buffer.from([96, 96, 96, 96, 160, 160, 160, 160]));
  const track = Buffer.concat([new Uint8Array(head.buffer), tone]);
  const changed = Promise.withResolvers<void>();
  const order = { body, creationId: crypto.randomUUID(), track, madeBytes: 0, isCancelled: false, changed };
  orders.set(id, order);
  setTimeout(() => orders.delete(id), DAY_MS).unref();
  void make(order);
  return order;
}

/** Belongs to no request: what is paid for is made, whoever listens. */
async function make(order: Order): Promise<void> {
  while (!order.isCancelled && order.madeBytes < order.track.length) {
    await Bun.sleep(Number(PIECE_MS));
    order.madeBytes = Math.min(order.madeBytes + PIECE_BYTES, order.track.length);
    tell(order);
  }
}

function tell(order: Order): void {
  order.changed.resolve();
  order.changed = Promise.withResolvers();
}

async function* listen(order: Order) {
  for (let sent = 0; sent < order.track.length; ) {
    if (sent === order.madeBytes) await order.changed.promise;
    // A track that breaks off must not look whole.
    if (order.isCancelled) throw new Error('cancelled');
    const piece = order.track.subarray(sent, order.madeBytes);
    sent += piece.length;
    yield piece;
  }
}

function statusOf({ isCancelled, madeBytes, track, creationId }: Order): string {
  const status = isCancelled ? 'cancelled' : madeBytes === track.length ? 'ready' : 'making';
  return JSON.stringify({ status, creation_id: creationId });
}

function cancel(order: Order): Response {
  if (order.madeBytes === order.track.length) return refuse(409, 'The track is made already');
  order.isCancelled = true;
  tell(order);
  return new Response(null, { status: 204 });
}

function follow(order: Order, { headers }: Request): Response {
  const lastId = Number(headers.get('last-event-id') ?? -1);
  const isOver = order.isCancelled || lastId === order.track.length;
  // Otherwise an EventSource comes back for ever.
  if (isOver) return new Response(null, { status: 204 });
  return new Response(eventsAfter(order, lastId), { headers: { 'content-type': 'text/event-stream' } });
}

/** The id is all that a page has to know, so no event is kept for one that comes back. */
async function* eventsAfter(order: Order, lastId: number) {
  for (let id = lastId; id < order.track.length && !order.isCancelled; ) {
    if (id === order.madeBytes) await Promise.race([order.changed.promise, Bun.sleep(30_000)]);
    id = order.madeBytes;
    yield `id: ${id}\ndata: ${statusOf(order)}\n\n`;
  }
}

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(PORT),
  idleTimeout: 0,
  routes: {
    '/v1/auth/idp': async (request) => {
      const { access_token } = JSON.parse(await request.text());
      return Response.json({ access_token, refresh_token: access_token });
    },
    '/v1/music': { POST: ofUser(takeOrder) },
    '/v1/orders/:key': {
      GET: ofOrder((order) => new Response(statusOf(order), { headers: JSON_TYPE })),
      DELETE: ofOrder(cancel),
    },
    '/v1/orders/:key/events': ofOrder(follow),
  },
  fetch: () => refuse(404, 'There is no such path'),
});
