/** One run: a gateway process before a recording upstream, and batches of requests that are judged one by one. */

import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts';
import { ORIGIN } from '../../support/world.ts';
import type { Call } from './call-reader.ts';
import { Connection, type Exchange } from './connection.ts';
import { Figures } from './figures.ts';
import { Findings } from './findings.ts';
import type { FuzzRequest } from './fuzz-request.ts';
import { BATCH, isForbiddenBatch, requestAt } from './generator.ts';
import { problemWithExchange } from './judge-answer.ts';
import { problemWithCall, problemWithOwner } from './judge-call.ts';
import type { Transaction } from './judge-relay.ts';
import { problemWithCause, problemWithResponses } from './judge-rules.ts';
import { markerOf } from './marker.ts';
import { type ProcessSize, processSize } from './process-size.ts';
import { type RecordingUpstream, startRecordingUpstream } from './recording-upstream.ts';
import type { UpstreamResponse } from './upstream-answers.ts';

export interface FuzzOptions {
  readonly seed: number;
  readonly requests: number;
  readonly connections: number;
  /** The first request's index: with `requests: 1` a single one is repeated. */
  readonly from?: number;
  readonly progress?: (text: string) => void;
}

export interface FuzzOutcome {
  readonly findings: readonly string[];
  readonly figures: string;
}

/** After so many requests the gateway has grown to its working size; from then on it may not grow by more than this. */
const WARM_UP = 10_000;
const MOST_GROWTH_MIB = 150;
/** Open files that a connection being closed may still hold. */
const MOST_OPEN_FILES = 40;
/** A connection carries so many requests at most. */
const MOST_USES = 20;
const CONTROL_TOKEN = 'acc.control.ok';

export async function fuzz(options: FuzzOptions): Promise<FuzzOutcome> {
  const run = new Run(options);
  await using upstream = await startRecordingUpstream(run);
  await using gateway = await startGatewayProcess({
    UPSTREAM_URL: upstream.upstreamUrl,
    IDP_URL: upstream.identityProviderUrl,
  });
  return await run.execute(gateway, upstream);
}

class Run {
  readonly #options: FuzzOptions;
  readonly #findings: Findings;
  readonly #figures = new Figures();
  /** Those of this batch and of the one before, by their markers. */
  #current = new Map<string, FuzzRequest>();
  #previous: ReadonlyMap<string, FuzzRequest> = new Map();
  readonly #transactions = new WeakMap<FuzzRequest, readonly Transaction[]>();
  #upstreamHost = '';
  #isForbidden = false;
  #isAlive = true;

  constructor(options: FuzzOptions) {
    this.#options = options;
    this.#findings = new Findings(options.seed);
  }

  async execute(gateway: GatewayProcess, upstream: RecordingUpstream): Promise<FuzzOutcome> {
    const { requests, from = 0, progress = () => {} } = this.#options;
    void gateway.exited.then(() => {
      this.#isAlive = false;
    });
    this.#upstreamHost = new URL(upstream.upstreamUrl).host;
    const before = await processSize(gateway.pid);
    let warm = before;
    for (let index = from; index < from + requests && this.#goesOn; ) {
      const next = Math.min(from + requests, index - (index % BATCH) + BATCH);
      await this.#batch(gateway, index, next);
      if (Math.floor(next / WARM_UP) > Math.floor(index / WARM_UP)) {
        const size = await processSize(gateway.pid);
        if (next <= from + WARM_UP) warm = size;
        progress(`${next - from} requests, ${upstream.calls} upstream calls, ${size?.residentMiB} MiB`);
      }
      index = next;
    }
    upstream.dropConnections();
    const sizes = await this.#judgeSize(gateway, warm);
    const warnings = gateway.errors().match(/^\{"level":"error".*$/gm) ?? [];
    if (warnings.length) this.#findings.add(`the gateway logged: ${warnings[0]}`, undefined);
    return { findings: this.#findings.texts, figures: `${this.#figures}\n${sized(before, warm, sizes)}` };
  }

  call(call: Call, answer: UpstreamResponse): void {
    if (call.headers.get('authorization') === `Bearer ${CONTROL_TOKEN}`) return;
    const find = (marker: string) => this.#current.get(marker) ?? this.#previous.get(marker);
    const { owner, problem } = problemWithOwner(call, this.#options.seed, find);
    this.#figures.countCall(call, owner !== undefined);
    if (owner) this.#transactions.set(owner, [...this.#caused(owner), { call, answer }]);
    const isUnaccounted = this.#isForbidden && !owner;
    const found =
      problemWithCall(call) ??
      problem ??
      problemWithCause(call, owner) ??
      (isUnaccounted ? 'a call, although no request has an allowed Origin' : undefined);
    if (found !== undefined) this.#findings.add(found, owner, written(call));
  }

  malformed(problem: string, received: string): void {
    this.#findings.add(`a call that is not HTTP: ${problem}`, undefined, received);
  }

  #caused(request: FuzzRequest): readonly Transaction[] {
    return this.#transactions.get(request) ?? [];
  }

  get #goesOn(): boolean {
    return this.#isAlive && !this.#findings.isFull;
  }

  async #batch(gateway: GatewayProcess, start: number, end: number): Promise<void> {
    this.#previous = this.#current;
    this.#current = new Map();
    this.#isForbidden = isForbiddenBatch(start);
    let next = start;
    const worker = async () => {
      let connection: Connection | undefined;
      while (next < end && this.#goesOn) {
        connection = await this.#send(gateway, requestAt(this.#options.seed, next++), connection);
      }
      connection?.close();
    };
    await Promise.all(Array.from({ length: this.#options.connections }, worker));
    if (!this.#isAlive)
      this.#findings.add(`the gateway died:\n${gateway.errors()}`, undefined, this.#batchText());
    else await this.#control(gateway);
  }

  /** @returns the connection, if the next request may go over it */
  async #send(gateway: GatewayProcess, request: FuzzRequest, used: Connection | undefined) {
    const { seed } = this.#options;
    this.#current.set(request.marker, request);
    const port = Number(new URL(gateway.url).port);
    let connection = used ?? new Connection(port);
    let exchange = await connection.exchange(request);
    if (used && exchange.end === 'closed' && exchange.rest === '') {
      // The gateway may have closed it before the request came.
      connection = new Connection(port);
      exchange = await connection.exchange(request);
    }
    this.#figures.countExchange(request, exchange);
    const problem = this.#isAlive
      ? (problemWithExchange(request, exchange, seed) ??
        problemWithResponses(request, exchange.answers, {
          transactions: this.#caused(request),
          upstreamHost: this.#upstreamHost,
          wasSentOnce: !used || connection === used,
        }))
      : undefined;
    if (problem !== undefined) this.#findings.add(problem, request, received(exchange), connection.carried);
    if (connection.isReusable(exchange) && request.isFramed && connection.carried.length < MOST_USES)
      return connection;
    connection.close();
    return undefined;
  }

  /** What a signed-in user would see; also waits for what the batch may have left under way. */
  async #control(gateway: GatewayProcess): Promise<void> {
    const headers = { origin: ORIGIN, cookie: `svc_music_access=${CONTROL_TOKEN}` };
    for (let round = 0; round < 2; round++) {
      const response = await fetch(`${gateway.url}/api/auth/session`, { headers, keepalive: false }).catch(
        String,
      );
      const isWell =
        typeof response !== 'string' &&
        response.status === 200 &&
        (await response.text()).includes('upstream');
      if (!isWell) this.#findings.add('a session check fails', undefined, this.#batchText());
      await Bun.sleep(10);
    }
  }

  async #judgeSize(gateway: GatewayProcess, warm: ProcessSize | undefined): Promise<ProcessSize | undefined> {
    await Bun.sleep(300);
    const size = await processSize(gateway.pid);
    if (!size || !warm) return size;
    const growthMiB = size.residentMiB - warm.residentMiB;
    if (growthMiB > MOST_GROWTH_MIB)
      this.#findings.add(`grew by ${growthMiB} MiB after the first ${WARM_UP} requests`, undefined);
    if (size.openFiles > MOST_OPEN_FILES)
      this.#findings.add(`${size.openFiles} files are still open`, undefined);
    return size;
  }

  /** The requests of the batch, any of which may be at fault. */
  #batchText(): string {
    const indexes = [...this.#current.values()].map(({ index }) => index);
    return `requests ${Math.min(...indexes)} to ${Math.max(...indexes)} (markers like ${markerOf(this.#options.seed, indexes[0] ?? 0)})`;
  }
}

function sized(...sizes: readonly (ProcessSize | undefined)[]): string {
  const texts = sizes.map((size) =>
    size ? `${size.residentMiB} MiB and ${size.openFiles} open files` : 'unknown',
  );
  return `gateway at the start: ${texts[0]}; after the warm-up: ${texts[1]}; at the end: ${texts[2]}`;
}

function written({ method, target, headers, body }: Call): string {
  return `${method} ${target}\n${[...headers].map(([name, value]) => `${name}: ${value}`).join('\n')}\n\n${body}`;
}

function received({ answers, rest }: Exchange): string {
  return answers.map(({ bytes }) => bytes).join('') + rest;
}
