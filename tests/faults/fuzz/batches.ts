/** Sends batches of requests, and judges all responses and all calls that they cause. */

import { parseResponses, RawConnection } from '../../support/raw-http.ts';
import { ORIGIN } from '../../support/world.ts';
import { markerOf, markersIn, PLACEHOLDER } from './choices.ts';
import type { FuzzRequest } from './grammar.ts';
import { problemWithCall } from './judge-call.ts';
import { type Exchange, problemWithExchange, type SentRequest } from './judge-response.ts';
import type { Call } from './recording-upstream.ts';
import { responseTo, type UpstreamResponse } from './responses.ts';

/** The token of the control, a session check that has to succeed after each batch. */
const CONTROL_TOKEN = 'acc.control.ok';
/** A complete request must get its response within this. */
const RESPONSE_MS = 20_000;
/** Nobody knows whether the gateway waits for the rest of an incomplete one. */
const SILENCE_MS = 60;
/** For a second response, to what may have become two requests. */
const AFTERMATH_MS = 3;

export class Batches {
  readonly #gatewayUrl: string;
  readonly #upstreamHost: string;
  /** By marker, the requests of this batch and of the one before, whose calls may still arrive. */
  #sent = new Map<string, SentRequest>();
  #before = this.#sent;
  #findings: string[] = [];
  #sentSoFar = 0;

  constructor(gatewayUrl: string, upstreamHost: string) {
    this.#gatewayUrl = gatewayUrl;
    this.#upstreamHost = upstreamHost;
  }

  /**
   * Sends the requests of a connection one after another, and those of different connections at the same time.
   *
   * @returns what is wrong with them
   */
  async send(connections: readonly (readonly FuzzRequest[])[]): Promise<string[]> {
    this.#findings = [];
    this.#before = this.#sent;
    this.#sent = new Map();
    await Promise.all(connections.map((requests) => this.#sendAll(requests)));
    // What a signed-in user sees. Also waits for the calls that the batch may have left in flight.
    const headers = { origin: ORIGIN, cookie: `svc_music_access=${CONTROL_TOKEN}` };
    for (let round = 0; round < 2; round++) {
      const url = `${this.#gatewayUrl}/api/auth/session`;
      const response = await fetch(url, { headers, keepalive: false }).catch(String);
      const text = typeof response === 'string' ? response : `${response.status} ${await response.text()}`;
      if (!text.startsWith('200 {"upstream"')) this.add(`a session check fails: ${text}`);
      await Bun.sleep(10);
    }
    return this.#findings;
  }

  add(problem: string, sent?: SentRequest, evidence = ''): void {
    const about = sent ? [`request: ${printable(sent.bytes)}`] : [];
    this.#findings.push([problem, ...about, `evidence: ${printable(evidence)}`].join('\n  '));
  }

  /** Judges a call that has reached the upstream, and responds to it. */
  call(call: Call): UpstreamResponse {
    const said = responseTo(call, (marker) => this.#sentWith(marker)?.response);
    if (call.headers.get('authorization') === `Bearer ${CONTROL_TOKEN}`) return said;
    const [marker, ...others] = markersIn([call.target, ...call.headers.values(), call.body].join('\n'));
    const owner = marker === undefined ? undefined : this.#sentWith(marker);
    const problem =
      problemWithCall(call) ??
      (marker !== undefined && !owner ? 'the call belongs to no request in flight' : undefined) ??
      (others.length ? `the call mixes requests: ${[marker, ...others].join(', ')}` : undefined) ??
      (owner && !owner.mayPass ? 'a request without an allowed Origin caused a call' : undefined);
    const lines = [...call.headers].map(([name, value]) => `${name}: ${value}`);
    const written = [`${call.method} ${call.target}`, ...lines, '', call.body].join('\n');
    if (problem !== undefined) this.add(problem, owner, written);
    return said;
  }

  #sentWith(marker: string): SentRequest | undefined {
    return this.#sent.get(marker) ?? this.#before.get(marker);
  }

  async #sendAll(requests: readonly FuzzRequest[]): Promise<void> {
    const port = Number(new URL(this.#gatewayUrl).port);
    let connection: RawConnection | undefined;
    for (const each of requests) {
      const marker = markerOf(this.#sentSoFar++);
      const request = { ...each, marker, bytes: each.bytes.replaceAll(PLACEHOLDER, marker) };
      this.#sent.set(marker, request);
      const used = connection;
      connection ??= new RawConnection(port);
      let done = await exchange(connection, request);
      if (used && done.end === 'closed' && done.rest === '') {
        // The gateway may have closed the connection before the request arrived.
        connection = new RawConnection(port);
        done = await exchange(connection, request);
      }
      const problem = problemWithExchange(request, done, this.#upstreamHost);
      const received = done.responses.map(({ bytes }) => bytes).join('') + done.rest;
      if (problem !== undefined) this.add(problem, request, received);
      const headers = new Map(done.responses[0]?.headers);
      // A response of Bun's own has no other header than `Connection`, and ends the connection.
      const isKept = headers.size > 1 && !/close/i.test(headers.get('connection') ?? '');
      if (request.isFramed && !connection.isClosed && done.rest === '' && isKept) continue;
      connection.reset();
      connection = undefined;
    }
    connection?.reset();
  }
}

async function exchange(connection: RawConnection, { bytes, isFramed }: SentRequest): Promise<Exchange> {
  connection.received = '';
  await connection.send(bytes);
  const parse = () => parseResponses(connection.received, bytes.startsWith('HEAD '));
  const deadline = performance.now() + (isFramed ? RESPONSE_MS : SILENCE_MS);
  while (!connection.isClosed && !parse().responses.length && performance.now() < deadline)
    await connection.changed(deadline - performance.now());
  if (!isFramed && !connection.isClosed) await Bun.sleep(AFTERMATH_MS);
  const parsed = parse();
  const end = parsed.responses.length ? 'responded' : connection.isClosed ? 'closed' : 'silent';
  return { ...parsed, end };
}

/** The bytes in a form that can be pasted into a test: a JSON string, one character per byte. */
export function printable(bytes: string, limit = 4000): string {
  const shown = bytes.length > limit ? `${bytes.slice(0, limit)}...(${bytes.length} bytes)` : bytes;
  const escaped = (byte: string) => `\\u00${byte.charCodeAt(0).toString(16).padStart(2, '0')}`;
  return JSON.stringify(shown).replace(/[\x7f-\xff]/g, escaped);
}
