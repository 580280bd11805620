/** An upstream and identity provider that respond only as a test has scripted, and remember what they received. */

export interface Received {
  readonly method: string;
  /** Path and query, below the base path. */
  readonly target: string;
  readonly headers: Headers;
  readonly body: string;
  readonly bytes: Uint8Array;
  /** Aborted when the gateway drops the call. */
  readonly signal: AbortSignal;
}

export type Respond = (received: Received) => Response | Promise<Response>;

/** Both live below a base path, so that every test also shows that a path prefix is kept. */
const BASE_PATH = /^\/(?:base|idp)(?=\/)/;

export class ScriptedUpstream implements AsyncDisposable {
  readonly received: Received[] = [];
  readonly unexpected: string[] = [];
  readonly #responses = new Map<string, Respond>();
  readonly #server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    fetch: (request) => this.#take(request),
  });
  readonly upstreamUrl = `http://127.0.0.1:${this.#server.port}/base`;
  readonly identityProviderUrl = `http://127.0.0.1:${this.#server.port}/idp`;
  #arrival = Promise.withResolvers<void>();

  /** Scripts the response to a call such as `GET /v1/me`, for as often as it comes. */
  on(call: string, respond: Respond): this {
    this.#responses.set(call, respond);
    return this;
  }

  /** The calls received, such as `GET /v1/me`, in their order. */
  get calls(): string[] {
    return this.received.map(({ method, target }) => `${method} ${target}`);
  }

  /** Waits until a call has come so many times. */
  async arrived(call: string, times = 1): Promise<void> {
    while (this.calls.filter((each) => each === call).length < times) {
      await this.#arrival.promise;
    }
  }

  /** The last call of that name. */
  last(call: string): Received {
    const found = this.received.findLast(({ method, target }) => `${method} ${target}` === call);
    if (!found) throw new Error(`no ${call} among: ${this.calls.join(', ')}`);
    return found;
  }

  stop(): Promise<void> {
    return this.#server.stop(true);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    if (this.unexpected.length) throw new Error(`not scripted: ${this.unexpected.join()}`);
  }

  async #take(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const target = url.pathname.replace(BASE_PATH, '') + url.search;
    const { method, headers, signal } = request;
    const bytes = await request.bytes();
    const received = { method, target, headers, body: Buffer.from(bytes).toString(), bytes, signal };
    this.received.push(received);
    this.#arrival.resolve();
    this.#arrival = Promise.withResolvers();
    const call = `${request.method} ${target}`;
    const respond = BASE_PATH.test(url.pathname) ? this.#responses.get(call) : undefined;
    if (respond) return respond(received);
    this.unexpected.push(`${call} (${url.pathname})`);
    return Response.json({ error: { message: `unexpected ${call}` } }, { status: 599 });
  }
}
