/** The metrics for Prometheus. Labels come from fixed lists, so that no input can create new ones. */

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import packageJson from '../../../package.json' with { type: 'json' };
import type { Admission } from '../admission/admission.ts';
import { messages } from '../http/messages.ts';
import type { RequestRecord } from '../record/request-record.ts';

const PREFIX = 'music_gateway_';
/** From a session check with a nearby upstream to the longest generation. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 120, 280];

/** @see https://prometheus.io/docs/practices/naming/ */
export class Metrics {
  readonly registry = new Registry();
  readonly #inFlight = this.#gauge('requests_in_flight', 'Requests that have not ended.', 'route');
  readonly #head = this.#histogram('response_head_seconds', 'Time until the head of the response.', 'route');
  readonly #calls = this.#histogram('upstream_seconds', 'Calls to other servers.', 'call', 'outcome');
  readonly #ended = this.#counter('requests_total', 'Requests that have ended.', 'route', 'method', 'status');
  readonly #refreshes = this.#counter('refreshes_total', 'Requests that needed a refresh.', 'outcome');
  readonly #reuses = this.#counter('refresh_token_reuses_total', 'Spent tokens sent to the upstream.', 'why');
  readonly #errors = this.#counter('errors_total', 'Error responses of the gateway itself.', 'reason');
  readonly #bytes = this.#counter('sent_bytes_total', 'Bytes of bodies sent, when they have ended.', 'route');
  readonly #unkeyed = this.#counter('unkeyed_generations_total', 'Generations without Idempotency-Key.');
  readonly #slices = this.#counter('slices_total', 'Slices of bodies asked of the upstream.', 'route');
  readonly #aborts = this.#counter('client_aborts_total', 'Clients that disconnected.', 'route', 'phase');
  readonly #broken = this.#counter('broken_bodies_total', 'Bodies that the upstream broke off.', 'route');
  readonly #cutOffs = this.#counter('cut_off_total', 'Clients cut off during a body.', 'call', 'why');
  readonly #logFailures = this.#counter('log_failures_total', 'Failed writes of the log.');

  constructor() {
    this.#gauge('info', 'The version that runs.', 'version').set({ version: packageJson.version }, 1);
    // Starts every reason at 0: a counter that appears with its first error would show no increase.
    for (const reason of Object.keys(messages.en)) this.#errors.inc({ reason }, 0);
    for (const why of ['presented', 'late']) this.#reuses.inc({ why }, 0);
    collectDefaultMetrics({ register: this.registry });
  }

  /** Serves the metrics on a separate port, which must not be public. */
  serve(address: { port: number; hostname: string }) {
    const { registry } = this;
    const metrics = async () =>
      new Response(await registry.metrics(), { headers: { 'content-type': registry.contentType } });
    return Bun.serve({
      ...address,
      development: false,
      // By default, Bun lets a second gateway share the port without an error.
      reusePort: false,
      routes: { '/metrics': { GET: metrics } },
      fetch: () => new Response('The metrics are at /metrics.\n', { status: 404 }),
    });
  }

  began({ route }: RequestRecord): void {
    this.#inFlight.inc({ route });
  }

  responded({ route, headMs }: RequestRecord): void {
    this.#head.observe({ route }, headMs / 1000);
  }

  ended(record: RequestRecord): void {
    const { route, method, clientGone } = record;
    this.#inFlight.dec({ route });
    // The client has received no response, neither a success nor a failure: it has left, or the process has ended.
    const isSent = clientGone !== 'waiting' && record.status !== 0;
    const status = isSent ? statusClass(record.status) : 'none';
    this.#ended.inc({ route, method, status });
    for (const { call, outcome, ms } of record.calls) {
      const kind = typeof outcome === 'number' ? statusClass(outcome) : outcome;
      this.#calls.observe({ call, outcome: kind }, ms / 1000);
    }
    if (record.refresh) this.#refreshes.inc({ outcome: record.refresh });
    if (record.refreshTokenReused) this.#reuses.inc({ why: record.refreshTokenReused });
    if (record.reason) this.#errors.inc({ reason: record.reason });
    if (record.bytes) this.#bytes.inc({ route }, record.bytes);
    if (record.lacksIdempotencyKey) this.#unkeyed.inc();
    if (record.slices) this.#slices.inc({ route }, record.slices);
    if (clientGone) this.#aborts.inc({ route, phase: clientGone });
    if (record.brokenBody) this.#broken.inc({ route });
    if (record.cutOff) this.#cutOffs.inc({ call: record.calls.at(-1)?.call ?? 'none', why: record.cutOff });
  }

  /** Counts what the log cannot report itself: lines that were dropped or could not be written. */
  logFailed(): void {
    this.#logFailures.inc();
  }

  /** Exports what is admitted and refused: it is counted where it happens, and read at each scrape. */
  watch(admission: Admission): void {
    const { ledger, memoryLimitBytes } = admission;
    const { identityProvider, sessions, signOuts, reads, streams } = admission;
    const { perSession, signInBodies, orderBodies, relayedBodies } = admission;
    const pools = [identityProvider, sessions, signOuts, reads, streams, ledger];
    const refusing = [...pools, perSession, signInBodies, orderBodies, relayedBodies];
    new Gauge({
      ...this.#named('places_in_use', 'Calls in flight, and the bytes of memory that are reserved.', 'pool'),
      collect() {
        for (const { name, inUse } of pools) this.set({ pool: name }, inUse);
      },
    });
    const limits = this.#gauge('places_limit', 'How many there may be.', 'pool');
    for (const { name, limit } of pools) limits.set({ pool: name }, limit);
    new Counter({
      ...this.#named('refused_total', 'Calls and bodies that were refused for lack of room.', 'pool'),
      collect() {
        this.reset();
        for (const { name, refused } of refusing) this.inc({ pool: name }, refused);
      },
    });
    const read = (name: string, help: string, value: () => number) =>
      new Gauge({
        ...this.#named(name, help),
        collect() {
          this.set(value());
        },
      });
    // What is not in the ledger is the process itself.
    const ownBytes = memoryLimitBytes - ledger.limit;
    const promised = 'What everything currently admitted may use at most.';
    read('memory_promised_bytes', promised, () => ownBytes + ledger.inUse);
    const charged = 'What the kernel charges for the process, and what is about to arrive.';
    read('memory_charged_bytes', charged, () => ownBytes + ledger.charged());
    this.#gauge('memory_limit_bytes', 'What the process may use.').set(memoryLimitBytes);
  }

  /** Only for a gateway that uses Redis. */
  redisGauge(): { set(value: number): void } {
    return this.#gauge('redis_up', 'Whether Redis responds.');
  }

  /** Only for a gateway that exports traces. */
  droppedSpans(): (count: number) => void {
    const counter = this.#counter('dropped_spans_total', 'Spans that were not exported.');
    return (count) => counter.inc(count);
  }

  #counter<Label extends string>(name: string, help: string, ...labelNames: Label[]) {
    return new Counter(this.#named(name, help, ...labelNames));
  }

  #histogram<Label extends string>(name: string, help: string, ...labelNames: Label[]) {
    return new Histogram({ ...this.#named(name, help, ...labelNames), buckets: SECONDS });
  }

  #gauge<Label extends string>(name: string, help: string, ...labelNames: Label[]) {
    return new Gauge(this.#named(name, help, ...labelNames));
  }

  #named<Label extends string>(name: string, help: string, ...labelNames: Label[]) {
    return { name: PREFIX + name, help, labelNames, registers: [this.registry] };
  }
}

function statusClass(status: number): string {
  return `${Math.floor(status / 100)}xx`;
}
