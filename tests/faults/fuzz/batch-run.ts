/** Sends one batch of requests and judges all responses, and all calls that they cause. */

import { RawConnection } from '../../support/raw-http.ts';
import { ORIGIN } from '../../support/world.ts';
import type { Call } from './call-parser.ts';
import { type Exchange, exchange, isReusable, marked, type SentRequest } from './exchange.ts';
import { markerOf, markersIn } from './grammar/marker.ts';
import type { FuzzRequest } from './grammar/requests.ts';
import { problemWithCall, problemWithForwarding } from './judge-call.ts';
import { problemWithRefusal, problemWithRelay, type Transaction } from './judge-relay.ts';
import { isBare, problemWithExchange, problemWithLeaks } from './judge-response.ts';
import { parseRequest, valuesOf } from './parsed-request.ts';
import { responseTo, type UpstreamResponse } from './upstream-responses.ts';

/** The token of the control, a session check that has to succeed after each batch. */
const CONTROL_TOKEN = 'acc.control.ok';
let sentSoFar = 0;

export class BatchRun {
  readonly #isForbidden: boolean;
  readonly #gatewayUrl: string;
  readonly #upstreamHost: string;
  #previous: BatchRun | undefined;
  readonly #sent = new Map<string, SentRequest>();
  readonly #transactions = new Map<SentRequest, Transaction[]>();
  readonly findings: string[] = [];
  /** The indexes of the connections with which something was wrong. */
  readonly suspects = new Set<number>();
  readonly #connectionOf = new Map<string, number>();

  /**
   * @param isForbidden whether no request has the allowed origin, so that not one call may reach the upstream
   * @param previous the batch whose calls may still arrive
   */
  constructor(
    isForbidden: boolean,
    gatewayUrl: string,
    upstreamHost: string,
    previous: BatchRun | undefined,
  ) {
    this.#isForbidden = isForbidden;
    this.#gatewayUrl = gatewayUrl;
    this.#upstreamHost = upstreamHost;
    this.#previous = previous;
    if (previous) previous.#previous = undefined;
  }

  get size(): number {
    return this.#sent.size;
  }

  /** The requests of a connection are sent one after another, those of different connections at the same time. */
  async send(connections: readonly (readonly FuzzRequest[])[]): Promise<void> {
    await Promise.all(connections.map((requests, index) => this.#sendAll(requests, index)));
    await this.#control();
  }

  add(problem: string, request?: SentRequest, evidence = ''): void {
    const about = request ? [`${request.kind} request: ${printable(request.bytes)}`] : [];
    const seen = evidence ? [`evidence: ${printable(evidence)}`] : [];
    const connection = request && this.#connectionOf.get(request.marker);
    if (connection !== undefined) this.suspects.add(connection);
    this.findings.push([problem, ...about, ...seen].join('\n  '));
  }

  /** Judges a call that has reached the upstream, and responds to it. */
  call(call: Call): UpstreamResponse {
    const said = responseTo(call, (marker) => this.sent(marker)?.response);
    if (call.headers.get('authorization') === `Bearer ${CONTROL_TOKEN}`) return said;
    const text = [call.target, ...call.headers.values(), call.body].join('\n');
    const [marker, ...others] = markersIn(text);
    const owner = marker === undefined ? undefined : this.sent(marker);
    if (owner) this.#transactions.set(owner, [...this.causedBy(owner), { call, said }]);
    const parsed = owner && parseRequest(owner);
    const problem =
      problemWithCall(call) ??
      (marker !== undefined && !owner ? 'the call belongs to no request in flight' : undefined) ??
      (others.length ? `the call mixes requests: ${[marker, ...others].join(', ')}` : undefined) ??
      (owner && !owner.mayPass ? 'a request without an allowed Origin caused a call' : undefined) ??
      (parsed && problemWithForwarding(call, parsed)) ??
      (this.#isForbidden && !owner ? 'a call, although no request has an allowed Origin' : undefined);
    if (problem !== undefined) this.add(problem, owner, written(call));
    return said;
  }

  /** The request of that marker, in this batch or the one before. */
  sent(marker: string): SentRequest | undefined {
    return this.#sent.get(marker) ?? this.#previous?.sent(marker);
  }

  causedBy(request: SentRequest): readonly Transaction[] {
    return this.#transactions.get(request) ?? this.#previous?.causedBy(request) ?? [];
  }

  async #sendAll(requests: readonly FuzzRequest[], index: number): Promise<void> {
    const port = Number(new URL(this.#gatewayUrl).port);
    let connection: RawConnection | undefined;
    for (const each of requests) {
      const request = marked(each, markerOf(sentSoFar++));
      this.#sent.set(request.marker, request);
      this.#connectionOf.set(request.marker, index);
      const used = connection;
      connection ??= new RawConnection(port);
      let done = await exchange(connection, request);
      if (used && done.end === 'closed' && done.rest === '') {
        // The gateway may have closed the connection before the request arrived.
        connection = new RawConnection(port);
        done = await exchange(connection, request);
      }
      const problem =
        problemWithExchange(request, done) ?? this.#problemWith(request, done, !used || connection === used);
      if (problem !== undefined) this.add(problem, request, received(done));
      if (isReusable(connection, request, done)) continue;
      connection.reset();
      connection = undefined;
    }
    connection?.reset();
  }

  /** @param wasSentOnce only then the last call belongs to the response */
  #problemWith(request: SentRequest, { responses }: Exchange, wasSentOnce: boolean): string | undefined {
    const ours = responses.filter((response) => !isBare(response));
    const transactions = this.causedBy(request);
    const fromUpstream = transactions.map(({ said }) => said);
    const leak = ours
      .map((response) => problemWithLeaks(response, this.#upstreamHost, fromUpstream))
      .find((problem) => problem !== undefined);
    if (leak !== undefined) return leak;
    const [first] = ours;
    const parsed = wasSentOnce ? parseRequest(request) : undefined;
    if (!first || !parsed || valuesOf(parsed.headers, 'origin').join() !== ORIGIN) return undefined;
    return problemWithRefusal(first, parsed) ?? problemWithRelay(first, parsed, transactions);
  }

  /** What a signed-in user sees. Also waits for the calls that the batch may have left in flight. */
  async #control(): Promise<void> {
    const headers = { origin: ORIGIN, cookie: `svc_music_access=${CONTROL_TOKEN}` };
    for (let round = 0; round < 2; round++) {
      const response = await fetch(`${this.#gatewayUrl}/api/auth/session`, {
        headers,
        keepalive: false,
      }).catch(String);
      const text = typeof response === 'string' ? response : `${response.status} ${await response.text()}`;
      if (!text.startsWith('200 {"upstream"')) this.add(`a session check fails: ${text}`);
      await Bun.sleep(10);
    }
  }
}

/** The bytes in a form that can be pasted into a test: a JSON string, one character per byte. */
export function printable(bytes: string, limit = 4000): string {
  const shown = bytes.length > limit ? `${bytes.slice(0, limit)}...(${bytes.length} bytes)` : bytes;
  return JSON.stringify(shown).replace(
    /[\x7f-\xff]/g,
    (byte) => `\\u00${byte.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
}

function written({ method, target, headers, body }: Call): string {
  return `${method} ${target}\n${[...headers].map(([name, value]) => `${name}: ${value}`).join('\n')}\n\n${body}`;
}

function received({ responses, rest }: Exchange): string {
  return responses.map(({ bytes }) => bytes).join('') + rest;
}
