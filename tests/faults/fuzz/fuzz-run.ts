/** One run: fast-check generates batches of requests, and shrinks the first one that something is wrong with. */

import fc from 'fast-check';
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts';
import { memoryOf, openFilesOf } from '../../support/process-status.ts';
import { BatchRun, printable } from './batch-run.ts';
import type { Call } from './call-parser.ts';
import { type Batch, batch } from './grammar/requests.ts';
import { type RecordingUpstream, startRecordingUpstream } from './recording-upstream.ts';
import { BASE_PATH, type UpstreamResponse } from './upstream-responses.ts';

export interface FuzzOptions {
  readonly seed: number;
  /** Batches are sent until there have been so many. */
  readonly requests: number;
  /** As a failure has printed it: only that batch is sent. */
  readonly path?: string;
  readonly progress?: (text: string) => void;
}

/** After so many requests the gateway has grown to its working size; from then on it may grow by this much. */
const WARM_UP_REQUESTS = 10_000;
const MOST_GROWTH_MB = 150;
/** Open files that a connection being closed may still hold. */
const MOST_OPEN_FILES = 40;
/** How long a failure is shrunk. */
const SHRINK_MS = 60_000;

/** @returns what is wrong, with the smallest batch that shows it and how to send it again; undefined if nothing is */
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
  #warmMb: number | undefined;
  #shrinksUntil: number | undefined;

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

  async check({ seed, requests, path = '', progress }: FuzzOptions): Promise<string | undefined> {
    const property = fc.asyncProperty(batch(), async (each) => {
      const until = this.#shrinksUntil;
      const isOver = until === undefined ? this.#requests >= requests : performance.now() > until;
      if (isOver) throw new fc.PreconditionFailure(true);
      const findings = await this.#send(each);
      if (findings.length === 0) return progress?.(`${this.#requests} requests`);
      this.#shrinksUntil ??= performance.now() + SHRINK_MS;
      throw new Error(findings.slice(0, 3).join('\n'));
    });
    const { failed, counterexample, counterexamplePath, errorInstance } = await fc.check(property, {
      seed,
      path,
      numRuns: path ? 1 : requests,
      endOnFailure: path !== '',
      unbiased: true,
    });
    if (!failed) return await this.#problemWithSize();
    const what = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
    const [shrunk] = counterexample ?? [];
    return `${what}\n${shrunk ? described(shrunk) : ''}\nFUZZ_SEED=${seed} FUZZ_PATH=${counterexamplePath} bun run fuzz`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#gateway?.[Symbol.asyncDispose]();
    await this.#stack.disposeAsync();
  }

  /** @returns what is wrong */
  async #send(each: Batch): Promise<readonly string[]> {
    this.#gateway ??= await startGatewayProcess({
      UPSTREAM_URL: `http://${this.#upstream.host}${BASE_PATH}`,
      IDP_URL: `http://${this.#upstream.host}/idp`,
    });
    const gateway = this.#gateway;
    const loggedBefore = errorsIn(gateway).length;
    const run = new BatchRun(each, gateway.url, this.#upstream.host, this.#batch);
    this.#batch = run;
    const findings = await run.findings();
    this.#requests += run.size;
    const isWarm = this.#requests > WARM_UP_REQUESTS;
    if (isWarm && !this.#shrinksUntil) this.#warmMb ??= await residentMb(gateway);
    const logged = errorsIn(gateway).slice(loggedBefore);
    const died = await Promise.race([gateway.exited, Bun.sleep(0)]);
    if (died !== undefined) {
      await gateway[Symbol.asyncDispose]();
      this.#gateway = undefined;
      return [`the gateway died with ${died}:\n${gateway.errors()}`];
    }
    return logged.length ? [...findings, `the gateway logged: ${logged[0]}`] : findings;
  }

  #call(call: Call): UpstreamResponse {
    return this.#batch?.call(call) ?? { dies: 'before' };
  }

  #malformed(problem: string, received: string): void {
    this.#batch?.add(`a call that is not HTTP: ${problem}`, undefined, received);
  }

  async #problemWithSize(): Promise<string | undefined> {
    const gateway = this.#gateway;
    if (!gateway) return undefined;
    this.#upstream.dropConnections();
    await Bun.sleep(300);
    const openFiles = await openFilesOf(gateway.pid).catch(() => 0);
    if (openFiles > MOST_OPEN_FILES) return `${openFiles} files are still open`;
    const growthMb = ((await residentMb(gateway)) ?? 0) - (this.#warmMb ?? Number.POSITIVE_INFINITY);
    return growthMb > MOST_GROWTH_MB
      ? `grew by ${growthMb} MB after ${WARM_UP_REQUESTS} requests`
      : undefined;
  }
}

/** Undefined where there is no /proc. */
async function residentMb({ pid }: GatewayProcess): Promise<number | undefined> {
  return (await memoryOf(pid).catch(() => undefined))?.rssMb;
}

function errorsIn(gateway: GatewayProcess): readonly string[] {
  return gateway.errors().match(/^\{"level":"error".*$/gm) ?? [];
}

/** The requests of a batch as they are sent, by their connections. */
function described({ connections }: Batch): string {
  return connections
    .map((requests, index) => {
      const lines = requests.map(
        ({ bytes, cuts }) => `  ${printable(bytes)}${cuts.length ? `, cut at ${cuts}` : ''}`,
      );
      return [`connection ${index + 1}:`, ...lines].join('\n');
    })
    .slice(0, 5)
    .join('\n');
}
