/**
 * Sends the gateway requests that nobody would write, and judges each response and each call that they cause. What is
 * found is shrunk, and printed with the FUZZ_SEED and the FUZZ_PATH that send it again. `bun run fuzz` sends 200,000, or
 * FUZZ_REQUESTS.
 */

import fc from 'fast-check';
import { startGatewayProcess } from '../../support/gateway-process.ts';
import { Batches, printable } from './batches.ts';
import { requestsOfConnection } from './grammar.ts';
import { startRecordingUpstream } from './recording-upstream.ts';
import { BASE_PATH } from './responses.ts';

const SHRINK_MS = 60_000;
/** Connections that are used at the same time, of which fast-check takes half on average. */
const CONNECTIONS = { maxLength: 128, size: 'max' } as const;
const REQUESTS_OF_BATCH = 150;

/** @throws Error with what is wrong, the fewest requests that show it, and how to send them again */
export async function fuzz(seed: number, requests: number, path = ''): Promise<void> {
  await using upstream = await startRecordingUpstream({
    call: (call) => batches.call(call),
    malformed: (problem, received) => batches.add(`a call that is not HTTP: ${problem}`, undefined, received),
  });
  await using gateway = await startGatewayProcess({
    UPSTREAM_URL: `http://${upstream.host}${BASE_PATH}`,
    IDP_URL: `http://${upstream.host}/idp`,
  });
  const batches = new Batches(gateway.url, upstream.host);
  let until = Number.POSITIVE_INFINITY;

  const property = fc.asyncProperty(fc.array(requestsOfConnection(), CONNECTIONS), async (connections) => {
    if (performance.now() > until) throw new fc.PreconditionFailure(true);
    const errors = () => gateway.errors().match(/^\{"level":"error".*$/gm) ?? [];
    const before = errors().length;
    const findings = await batches.send(connections);
    const logged = errors().slice(before, before + 1);
    findings.push(...logged.map((line) => `the gateway logged: ${line}`));
    const died = await Promise.race([gateway.exited, Bun.sleep(0)]);
    if (died !== undefined) findings.push(`the gateway died with ${died}:\n${gateway.errors()}`);
    if (findings.length === 0) return;
    until = Math.min(until, performance.now() + SHRINK_MS);
    throw new Error(findings.slice(0, 3).join('\n'));
  });
  const numRuns = Math.ceil(requests / REQUESTS_OF_BATCH);
  const details = await fc.check(property, { seed, path, numRuns, unbiased: true });
  if (!details.counterexample) return;
  const sent = details.counterexample[0].map((connection) =>
    connection.map(({ bytes }) => `  ${printable(bytes)}`).join('\n'),
  );
  const again = `FUZZ_SEED=${seed} FUZZ_PATH=${details.counterexamplePath} bun run fuzz`;
  throw new Error([details.errorInstance, 'shrunk to these connections:', ...sent, again].join('\n'));
}
