/** The users of an app, each of whom asks for what an app asks for, and counts what comes back. */

import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { text } from 'node:stream/consumers';
import { TRUST } from '../../deploy/proxies/tls-proxies.ts';
import { ORIGIN } from '../../support/world.ts';
import { Client } from '../client.ts';
import { cookieOf, requestOf } from '../raw-client.ts';
import { eventsOf, responseTo } from './app.ts';

export interface Call {
  /** Method and path. */
  readonly start: string;
  readonly user: string;
  readonly body?: string;
}

/** Resolves when the response has ended. */
type Send = () => Promise<void>;
/** Prepares calls, so that they can be sent at the same moment. */
type Connect = (calls: readonly Call[]) => Promise<Send[]>;

export const EVENTS = 'GET /api/upstream/v1/events';
const CHECK = 'GET /api/auth/session';
/** What an app asks for once its session check has found a user. */
const APP = [
  'GET /api/music/models',
  'GET /api/upstream/v1/balance',
  'GET /api/upstream/v1/music/creations',
  'GET /api/upstream/v1/activity',
  'GET /api/upstream/v1/summary',
];
/** How many calls it makes when it is opened. */
export const APP_CALLS = 1 + APP.length;
/** A listener's queue takes no more connections at once by default. */
const CONNECTED_AT_ONCE = 100;
/** Where the upstream has what the gateway calls otherwise. */
const UPSTREAM_PATHS: Readonly<Record<string, string>> = {
  '/api/auth/session': '/v1/me',
  '/api/music/models': '/v1/models',
};

export class Users implements Disposable {
  /** How many calls were served, and how many of the others ended how. */
  readonly endings: Record<string, number> = {};
  readonly #url: URL;
  readonly #connections = new DisposableStack();

  constructor(url: string) {
    this.#url = new URL(url);
  }

  /** Opens a connection for each call. */
  async connect(calls: readonly Call[]): Promise<Client[]> {
    const clients = calls.map((call) => this.#connections.use(new Client(planOf(call))));
    for (let from = 0; from < clients.length; from += CONNECTED_AT_ONCE) {
      const group = clients.slice(from, from + CONNECTED_AT_ONCE);
      await Promise.all(group.map((client) => client.connect(this.#url)));
    }
    return clients;
  }

  async sendAtOnce(calls: readonly Call[]): Promise<void> {
    await sendAll(await this.#http1(calls));
  }

  /** All of them open their app at the same moment. */
  open(users: readonly string[]): Promise<void> {
    return this.#open(users, (calls) => this.#http1(calls));
  }

  /** Each of them has one connection, and an address of his own, for limits that are per address. */
  openOverHttp2(users: readonly string[]): Promise<void> {
    const sessions = new Map(
      users.map((user, index) => {
        const options = { localAddress: `127.0.2.${1 + index}`, ...TRUST };
        const session = connect(this.#url, options);
        this.#connections.defer(() => session.destroy());
        return [user, session] as const;
      }),
    );
    return this.#open(users, async (calls) => {
      const connecting = [...sessions.values()].filter((session) => session.connecting);
      await Promise.all(connecting.map((session) => once(session, 'connect')));
      return calls.flatMap((call) => {
        const session = sessions.get(call.user);
        return session ? [() => this.count(call.start, askOverHttp2(session, call))] : [];
      });
    });
  }

  /** @param ended resolves with `served`, or with what there was instead */
  async count(start: string, ended: Promise<string>): Promise<void> {
    const ending = await ended;
    const name = ending === 'served' ? ending : `${start.replace(/\d+$/, '')}: ${ending}`;
    this.endings[name] = (this.endings[name] ?? 0) + 1;
  }

  [Symbol.dispose](): void {
    this.#connections.dispose();
  }

  async #open(users: readonly string[], prepare: Connect): Promise<void> {
    const checks = await prepare(users.map((user) => ({ start: CHECK, user })));
    const others = await prepare(users.flatMap((user) => APP.map((start) => ({ start, user }))));
    const opened = checks.map(async (check, index) => {
      await check();
      await sendAll(others.slice(index * APP.length, (index + 1) * APP.length));
    });
    await Promise.all(opened);
  }

  async #http1(calls: readonly Call[]): Promise<Send[]> {
    const clients = await this.connect(calls);
    return clients.map((client, index) => () => {
      client.send();
      return this.count(calls[index]?.start ?? '', endOf(client));
    });
  }
}

async function sendAll(sends: readonly Send[]): Promise<void> {
  await Promise.all(sends.map((send) => send()));
}

/** Waits for the end of a response. */
export async function endOf(client: Client): Promise<string> {
  await client.ended;
  if (client.ending === 'whole') return 'served';
  const status = /HTTP\/1\.1 (\d+)/.exec(client.seen)?.[1] ?? 'no response';
  return client.ending === 'refused' ? status : `${status}, ${client.ending}`;
}

function planOf({ start, user, body = '' }: Call) {
  const type = body.startsWith('{') ? {} : body && { 'content-type': 'application/octet-stream' };
  const request = requestOf(start, { ...cookieOf(user), ...type }, body);
  return { request, body: Buffer.from(expectedOf({ start, user, body })) };
}

function expectedOf({ start, user, body = '' }: Call): string {
  if (start === EVENTS) return eventsOf(user).join('');
  const [method = '', path = ''] = start.split(' ');
  const upstreamPath = UPSTREAM_PATHS[path] ?? path.replace('/api/upstream', '');
  return responseTo(method, upstreamPath, user, body.length);
}

async function askOverHttp2(session: ClientHttp2Session, call: Call): Promise<string> {
  const [method, path] = call.start.split(' ');
  const headers = { ':method': method, ':path': path, origin: ORIGIN, ...cookieOf(call.user) };
  const stream = session.request(headers);
  const response = once(stream.end(), 'response');
  try {
    const [head] = await response;
    const isRight = (await text(stream)) === expectedOf(call);
    return head[':status'] === 200 && isRight ? 'served' : `${head[':status']}`;
  } catch (error) {
    return String(error);
  }
}
