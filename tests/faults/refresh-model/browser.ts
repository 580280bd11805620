/** Clients: their cookies, and what they do through the real session layer of an instance. */

import { Admission } from '../../../src/gateway/admission/admission.ts';
import { Exchange } from '../../../src/gateway/exchange/exchange.ts';
import { GatewayError } from '../../../src/gateway/http/errors.ts';
import { systemClock } from '../../../src/gateway/refresh/clock.ts';
import type { RefreshCoordinator } from '../../../src/gateway/refresh/coordinator.ts';
import { beginSession, endSession } from '../../../src/gateway/session/begin-and-end.ts';
import { SessionCookies } from '../../../src/gateway/session/cookies.ts';
import { Session, type SessionParts } from '../../../src/gateway/session/session.ts';
import { RELAYED } from '../../support/unread-body.ts';
import {
  type History,
  type Request as RequestInHistory,
  type SignOut,
  settings,
  type Token,
} from './history.ts';
import type { Command } from './plans.ts';
import type { Process, World } from './schedule.ts';
import { ONE_WAY_MS } from './upstream-model.ts';

const cookies = new SessionCookies(settings.cookies);
const admission = new Admission(settings);

/** What the upstream responds to the calls of a request, by their address. */
const responses = new Map<string, () => Promise<Response>>();
let calls = 0;
const realFetch = globalThis.fetch;
const fetchInModel = (...call: Parameters<typeof fetch>) =>
  responses.get(String(call[0]))?.() ?? realFetch(...call);
// The session layer has no other seam. Calls to other addresses are made.
globalThis.fetch = Object.assign(fetchInModel, realFetch);

/** A client. It sends the cookies that it has, and each response changes them when it arrives. */
export class Client {
  readonly #world: World;
  readonly #cookies = new Map<string, string>();
  /** When it was last emptied. */
  lostAt = 0;

  /** @param pair of the cookies that it begins with */
  constructor(world: World, token: Token | undefined) {
    this.#world = world;
    if (!token) return;
    this.#cookies.set('svc_music_access', world.upstream.pairOf(token).accessToken);
    this.#cookies.set('svc_music_refresh', token.text);
  }

  get token(): Token | undefined {
    const text = this.#cookies.get('svc_music_refresh');
    return text === undefined ? undefined : this.#world.upstream.tokenWith(text);
  }

  lose(): void {
    this.#cookies.clear();
    this.lostAt = this.#world.time.now;
  }

  /** Makes a call that gets a 401, so that the session refreshes and calls again. */
  async request(process: Process, token: Token, { asksAfterMs, callMs, isLost }: Command): Promise<void> {
    const { history, upstream } = this.#world;
    const { name, clock, shared } = process;
    const exchange = this.#newExchange();
    await reach(process);
    const place = { token, instance: name };
    const request: RequestInHistory = { ...place, arrived: history.present(place), record: exchange.record };
    history.requests.push(request);
    const what = `the request with ${token.text} at ${name}`;
    const parts = partsOf(process, {
      async refresh(...asked) {
        request.asked = history.moment(`${what} asks for a refresh`);
        const outcome = await shared.refresh(...asked);
        const reuse = exchange.record.refreshTokenReused ? ', counted as a reuse' : '';
        request.ended = history.moment(`${what}: ${outcome.kind}${reuse}`);
        request.outcome = outcome.kind;
        if (outcome.kind === 'renewed') request.pair = upstream.tokenWith(outcome.pair.refreshToken);
        return outcome;
      },
      newest(...asked) {
        request.leaves = history.moment(`${what} asks for the newest pair`);
        return shared.newest(...asked);
      },
    });
    const url = `http://upstream.test/${calls++}`;
    let isFirst = true;
    responses.set(url, async () => {
      const [ms, status] = isFirst ? [asksAfterMs, 401] : [callMs, 200];
      isFirst = false;
      if (ms > 0) await clock.sleep(ms);
      return new Response(null, { status });
    });
    // A session reads the time of its arrival from this clock.
    const { now } = systemClock;
    systemClock.now = clock.now;
    const session = new Session(parts, exchange);
    systemClock.now = now;
    // Its deadline is in real time: no schedule lasts so long.
    const call = { name: 'proxy', method: 'GET', url, headers: {}, bodyMode: RELAYED } as const;
    await session.fetch({ ...call, timeoutMs: 60_000 }).catch((cause) => {
      if (!(cause instanceof GatewayError)) throw cause;
    });
    responses.delete(url);
    const sets = new Client(this.#world, undefined);
    sets.#change(exchange);
    request.given = sets.token;
    request.left = history.moment(`the response to ${what} leaves`);
    await this.#receive(exchange, isLost, request);
  }

  async signOut(process: Process, token: Token, isLost: boolean): Promise<void> {
    const { history } = this.#world;
    const exchange = this.#newExchange();
    await reach(process);
    const signOut = history.signOut({ token, instance: process.name }, 'sign-out');
    await endSession(ending(history, process, signOut), exchange, cookies.read(exchange.request));
    signOut.left = history.moment(`the response to the sign-out of ${token.text} leaves`);
    await this.#receive(exchange, isLost);
  }

  async signIn(process: Process, isLost: boolean): Promise<void> {
    const { history, upstream } = this.#world;
    const instance = process.name;
    const exchange = this.#newExchange();
    await reach(process);
    const found = cookies.read(exchange.request);
    const token = await upstream.signIn(process.clock);
    if (!token) return;
    const began = history.moment(`${instance} signs in with ${token.text}`);
    const old = found.refreshToken === undefined ? undefined : upstream.tokenWith(found.refreshToken);
    const end = old && history.signOut({ token: old, instance }, 'sign-in');
    await beginSession(ending(history, process, end), exchange, found, upstream.pairOf(token));
    const done = history.moment(`the response with ${token.text} to a sign-in leaves`);
    for (const each of history.signOuts) if (each.token === token) each.undone = { instance, began, done };
    await this.#receive(exchange, isLost);
  }

  /** A request with these cookies. */
  #newExchange(): Exchange {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const exchange = new Exchange(new Request('http://gateway.test', { headers: { cookie } }), null);
    exchange.set = { headers: {} };
    return exchange;
  }

  #change({ set }: Exchange): void {
    for (const line of [set.headers['set-cookie'] ?? []].flat()) {
      const { name, value, maxAge } = Bun.Cookie.parse(String(line));
      if (maxAge === 0) this.lose();
      else this.#cookies.set(name, value);
    }
  }

  /** The response arrives, after whatever else may happen first. */
  async #receive(exchange: Exchange, isLost: boolean, request?: RequestInHistory): Promise<void> {
    const { time, history, upstream, received } = this.#world;
    await new Promise<void>((resolve) => time.event(ONE_WAY_MS, resolve));
    if (isLost || exchange.set.headers['set-cookie'] === undefined) return;
    const from = this.token;
    this.#change(exchange);
    const to = this.token;
    if (to && !received.includes(to)) received.push(to);
    history.moment(`the cookies of a client change from ${from?.text} to ${to?.text}`);
    if (request && from && upstream.isLive(from)) request.changed = { from, to };
  }
}

/** Resolves when a request has reached the process. */
function reach({ clock }: Process): Promise<void> {
  return new Promise((resolve) => clock.reach(resolve));
}

function ending(history: History, process: Process, end: SignOut | undefined): SessionParts {
  return partsOf(process, {
    async end(...given) {
      const ended = await process.shared.end(...given);
      if (end) end.ended = history.moment(`${end.token.text} has ended at ${process.name}`);
      return ended;
    },
  });
}

/** What a session uses, with these methods in place of the coordinator's. */
function partsOf({ upstream, shared }: Process, methods: Partial<RefreshCoordinator>): SessionParts {
  const refreshCoordinator = new Proxy(shared, {
    get(target, name) {
      const value = Reflect.get(methods, name) ?? Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return { settings, api: upstream, admission, cookies, refreshCoordinator };
}
