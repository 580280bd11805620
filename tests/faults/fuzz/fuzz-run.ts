/** One run: fast-check generates the requests of each connection, and shrinks the first that something is wrong with. */

import fc, { type Arbitrary } from 'fast-check';
import { eventually } from '../../support/eventually.ts';
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts';
import { openSocketsOf } from '../../support/process-status.ts';
import { BatchRun, printable } from './batch-run.ts';
import type { Call } from './call-parser.ts';
import { type FuzzRequest, requestsOfConnection } from './grammar/requests.ts';
import { type RecordingUpstream, startRecordingUpstream } from './recording-upstream.ts';
import { BASE_PATH, type UpstreamResponse } from './upstream-responses.ts';

export interface FuzzOptions {
  readonly seed: number;
  /** Batches are sent until there have been so many. */
  readonly requests: number;
  readonly progress?: (text: string) => void;
}

/** Sockets of connections that may still be closing. */
const MOST_OPEN_SOCKETS = 40;
/** As many findings are shown. */
const MOST_FINDINGS = 3;
/** A batch has so many connections, which are used at the same time. Each is generated from a seed of its own. */
const CONNECTIONS = 128;
const ONCE = { numRuns: 1, unbiased: true };
const ANY_REQUESTS = requestsOfConnection(false);
const FORBIDDEN_REQUESTS = requestsOfConnection(true);
/** How long a failure is shrunk. */
const SHRINK_MS = 60_000;

/** @returns what is wrong, with the fewest requests that show it and how to send them again; undefined if nothing is */
export async function fuzz(options: FuzzOptions): Promise<string | undefined> {
  await using run = await Run.start();
  return await run.check(options);
}

class Run implements AsyncDisposable {
  readonly #stack: AsyncDisposableStack;
  readonly #upstream: RecordingUpstream;
  #gateway: GatewayProcess | undefined;
  #batch: BatchRun | undefined;
  #requests = 0;

  private constructor(stack: AsyncDisposableStack, upstream: RecordingUpstream) {
    this.#stack = stack;
    this.#upstream = upstream;
  }

  static async start(): Promise<Run> {
    const listener = {
      call: (call: Call) => run.#call(call),
      malformed: (...what: [string, string]) => run.#malformed(...what),
    };
    const stack = new AsyncDisposableStack();
    const run = new Run(stack, stack.use(await startRecordingUpstream(listener)));
    return run;
  }

  async check({ seed, requests, progress }: FuzzOptions): Promise<string | undefined> {
    for (let first = seed - (seed % CONNECTIONS); this.#requests < requests; first += CONNECTIONS) {
      const seeds = Array.from({ length: CONNECTIONS }, (_, index) => first + index);
      const run = await this.#send(
        isForbidden(first),
        seeds.flatMap((each) => fc.sample(requestsOf(each), { ...ONCE, seed: each })),
      );
      if (run.findings.length > 0) return await this.#shrinkAny(run, seeds);
      progress?.(`${this.#requests} requests`);
    }
    return await this.#problemWithSockets();
  }

  /** Repeats the connections of a batch alone, those first with which something was wrong. */
  async #shrinkAny({ findings, suspects }: BatchRun, seeds: readonly number[]): Promise<string> {
    const ordered = [...[...suspects].map((index) => seeds[index] ?? 0), ...seeds];
    for (const seed of new Set(ordered)) {
      const problem = await this.#shrink(seed);
      if (problem !== undefined) return problem;
    }
    const what = findings.slice(0, MOST_FINDINGS).join('\n');
    return `${what}\nNo connection shows this alone. FUZZ_SEED=${seeds[0]} bun run fuzz`;
  }

  async #shrink(seed: number): Promise<string | undefined> {
    const until = performance.now() + SHRINK_MS;
    const property = fc.asyncProperty(requestsOf(seed), async (requests) => {
      if (performance.now() > until) throw new fc.PreconditionFailure(true);
      const { findings } = await this.#send(isForbidden(seed), [requests]);
      if (findings.length > 0) throw new Error(findings.slice(0, MOST_FINDINGS).join('\n'));
    });
    const { counterexample, errorInstance } = await fc.check(property, { ...ONCE, seed });
    if (!counterexample) return undefined;
    const what = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
    const sent = counterexample[0].map(({ bytes, cuts }) => `  ${printable(bytes)}, cut at [${cuts}]`);
    return [what, 'shrunk to:', ...sent, `FUZZ_SEED=${seed} bun run fuzz`].join('\n');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#gateway?.[Symbol.asyncDispose]();
    await this.#stack.disposeAsync();
  }

  async #send(forbidden: boolean, connections: readonly (readonly FuzzRequest[])[]): Promise<BatchRun> {
    this.#gateway ??= await startGatewayProcess({
      UPSTREAM_URL: `http://${this.#upstream.host}${BASE_PATH}`,
      IDP_URL: `http://${this.#upstream.host}/idp`,
    });
    const gateway = this.#gateway;
    const loggedBefore = errorsIn(gateway).length;
    const run = new BatchRun(forbidden, gateway.url, this.#upstream.host, this.#batch);
    this.#batch = run;
    await run.send(connections);
    this.#requests += run.size;
    const died = await Promise.race([gateway.exited, Bun.sleep(0)]);
    const [logged] = errorsIn(gateway).slice(loggedBefore);
    if (logged !== undefined) run.add(`the gateway logged: ${logged}`);
    if (died !== undefined) {
      run.add(`the gateway died with ${died}:\n${gateway.errors()}`);
      await gateway[Symbol.asyncDispose]();
      this.#gateway = undefined;
    }
    return run;
  }

  #call(call: Call): UpstreamResponse {
    return this.#batch?.call(call) ?? { dies: 'before' };
  }

  #malformed(problem: string, received: string): void {
    this.#batch?.add(`a call that is not HTTP: ${problem}`, undefined, received);
  }

  async #problemWithSockets(): Promise<string | undefined> {
    const gateway = this.#gateway;
    if (!gateway) return undefined;
    this.#upstream.dropConnections();
    const areFew = async () => (await openSocketsOf(gateway.pid)) <= MOST_OPEN_SOCKETS;
    const what = `at most ${MOST_OPEN_SOCKETS} sockets to be open`;
    return await eventually(areFew, what).then(() => undefined, String);
  }
}

function errorsIn(gateway: GatewayProcess): readonly string[] {
  return gateway.errors().match(/^\{"level":"error".*$/gm) ?? [];
}

/** In every third batch no request has the allowed origin, so that not one call may reach the upstream. */
function isForbidden(seed: number): boolean {
  return Math.floor(seed / CONNECTIONS) % 3 === 2;
}

function requestsOf(seed: number): Arbitrary<readonly FuzzRequest[]> {
  return isForbidden(seed) ? FORBIDDEN_REQUESTS : ANY_REQUESTS;
}
