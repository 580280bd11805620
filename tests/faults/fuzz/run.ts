/** One run: fast-check generates the requests of each connection, and shrinks the first that something is wrong with. */

import { existsSync } from 'node:fs';
import fc from 'fast-check';
import { openSocketsOf } from '../../load/process-status.ts';
import { eventually } from '../../support/eventually.ts';
import { startGatewayProcess } from '../../support/gateway-process.ts';
import { Batch, printable } from './batch.ts';
import { type FuzzRequest, requestsOfConnection } from './grammar.ts';
import { startRecordingUpstream } from './recording-upstream.ts';
import { BASE_PATH } from './responses.ts';

interface FuzzOptions {
  readonly seed: number;
  /** Batches are sent until there have been so many. */
  readonly requests: number;
  readonly progress?: (text: string) => void;
}

/** Sockets of connections that may still be closing. */
const MOST_OPEN_SOCKETS = 40;
const MOST_FINDINGS = 3;
/** A batch has so many connections, which are used at the same time. Each is generated from a seed of its own. */
const CONNECTIONS = 128;
const ONCE = { numRuns: 1, unbiased: true };
const SHRINK_MS = 60_000;
const ANY_REQUESTS = requestsOfConnection(false);
const FORBIDDEN_REQUESTS = requestsOfConnection(true);

/** In every third batch no request has the allowed origin, so that not one call may reach the upstream. */
const isForbidden = (seed: number) => Math.floor(seed / CONNECTIONS) % 3 === 2;
const requestsOf = (seed: number) => (isForbidden(seed) ? FORBIDDEN_REQUESTS : ANY_REQUESTS);

/** @returns what is wrong, with the fewest requests that show it and how to send them again; undefined if nothing is */
export async function fuzz({ seed, requests, progress }: FuzzOptions): Promise<string | undefined> {
  let batch: Batch | undefined;
  await using upstream = await startRecordingUpstream({
    call: (call) => batch?.call(call) ?? 'dies before',
    malformed: (problem, received) => batch?.add(`a call that is not HTTP: ${problem}`, undefined, received),
  });
  await using gateway = await startGatewayProcess({
    UPSTREAM_URL: `http://${upstream.host}${BASE_PATH}`,
    IDP_URL: `http://${upstream.host}/idp`,
  });

  async function send(forbidden: boolean, connections: readonly (readonly FuzzRequest[])[]): Promise<Batch> {
    const errors = () => gateway.errors().match(/^\{"level":"error".*$/gm) ?? [];
    const before = errors().length;
    batch = new Batch(forbidden, gateway.url, upstream.host, batch?.sent);
    await batch.send(connections);
    const [logged] = errors().slice(before);
    if (logged !== undefined) batch.add(`the gateway logged: ${logged}`);
    const died = await Promise.race([gateway.exited, Bun.sleep(0)]);
    if (died !== undefined) batch.add(`the gateway died with ${died}:\n${gateway.errors()}`);
    return batch;
  }

  /** Repeats the connections of a batch alone, those first with which something was wrong. */
  async function shrink({ findings, suspects }: Batch, first: number): Promise<string> {
    const indexes = Array.from({ length: CONNECTIONS }, (_, index) => index);
    const until = performance.now() + SHRINK_MS;
    for (const each of new Set([...suspects, ...indexes].map((index) => first + index))) {
      const property = fc.asyncProperty(requestsOf(each), async (requests) => {
        if (performance.now() > until) throw new fc.PreconditionFailure(true);
        const { findings } = await send(isForbidden(each), [requests]);
        if (findings.length > 0) throw new Error(findings.slice(0, MOST_FINDINGS).join('\n'));
      });
      const { counterexample, errorInstance } = await fc.check(property, { ...ONCE, seed: each });
      if (!counterexample) continue;
      const sent = counterexample[0].map(({ bytes, cuts }) => `  ${printable(bytes)}, cut at [${cuts}]`);
      return [errorInstance, 'shrunk to:', ...sent, `FUZZ_SEED=${each} bun run fuzz`].join('\n');
    }
    const what = findings.slice(0, MOST_FINDINGS).join('\n');
    return `${what}\nNo connection shows this alone. FUZZ_SEED=${first} bun run fuzz`;
  }

  let sent = 0;
  for (let first = seed - (seed % CONNECTIONS); sent < requests; first += CONNECTIONS) {
    const seeds = Array.from({ length: CONNECTIONS }, (_, index) => first + index);
    const generated = seeds.flatMap((each) => fc.sample(requestsOf(each), { ...ONCE, seed: each }));
    const done = await send(isForbidden(first), generated);
    if (done.findings.length > 0) return await shrink(done, first);
    sent += done.sent.size;
    progress?.(`${sent} requests`);
  }
  upstream.dropConnections();
  if (!existsSync('/proc/self/fd')) return undefined;
  const areFew = async () => (await openSocketsOf(gateway.pid)) <= MOST_OPEN_SOCKETS;
  const what = `at most ${MOST_OPEN_SOCKETS} sockets to be open`;
  return await eventually(areFew, what).then(() => undefined, String);
}
