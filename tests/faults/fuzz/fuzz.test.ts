/**
 * Sends the gateway requests that nobody would write, and judges each response and each call that they cause. What is
 * found is shrunk, and printed with the FUZZ_SEED and the FUZZ_PATH that send it again. `bun run fuzz` sends 200,000, or
 * FUZZ_REQUESTS.
 */

import { it } from 'bun:test';
import type net from 'node:net';
import fc from 'fast-check';
import { startGatewayProcess } from '../../support/gateway-process.ts';
import { parseResponses, RawConnection } from '../../support/raw-http.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { ORIGIN } from '../../support/world.ts';
import { batch, type FuzzRequest, PLACEHOLDER } from './requests.ts';
import { markersIn, problemWithCall, problemWithResponses, type SentRequest } from './rules.ts';
import { parseCall, respond } from './upstream.ts';

const { FUZZ_SEED, FUZZ_REQUESTS, FUZZ_PATH = '' } = process.env;
const REQUESTS = Number(FUZZ_REQUESTS || 6000);
const SEED = Number(FUZZ_SEED || Math.floor(Math.random() * 2 ** 30));
const REQUESTS_OF_BATCH = 150;
/** More than two batches have. */
const MOST_SENT = 2000;
const SHRINK_MS = 60_000;
/** A complete request must get its response within this. */
const RESPONSE_MS = 20_000;
/** Nobody knows whether the gateway waits for the rest of an incomplete one. */
const SILENCE_MS = 60;
/** Of a signed-in user, whose session check has to succeed after each batch. */
const COOKIE = 'svc_music_access=acc.control.200-0';

/** By marker, the requests of this batch and of those before, whose calls may still arrive. */
const sent = new Map<string, SentRequest>();
let sentSoFar = 0;
let findings: string[] = [];

it(
  `the gateway keeps its promises under requests that nobody would write: FUZZ_SEED=${SEED}`,
  async () => {
    await using upstream = await startRawUpstream(listen);
    const addresses = { UPSTREAM_URL: `${upstream.url}/base`, IDP_URL: `${upstream.url}/idp` };
    await using gateway = await startGatewayProcess(addresses);
    const host = new URL(upstream.url).host;
    let until = Number.POSITIVE_INFINITY;
    const property = fc.asyncProperty(batch, async (connections) => {
      if (performance.now() > until) throw new fc.PreconditionFailure(true);
      const errors = () => gateway.errors().match(/^\{"level":"error".*$/gm) ?? [];
      const logged = errors().length;
      findings = [];
      await Promise.all(connections.map((requests) => sendAll(gateway.url, host, requests)));
      const check = { headers: { origin: ORIGIN, cookie: COOKIE }, keepalive: false };
      const checked = await (await fetch(`${gateway.url}/api/auth/session`, check)).text();
      if (!checked.startsWith('{"upstream"')) findings.push(`a session check fails: ${checked}`);
      findings.push(...errors().slice(logged));
      const died = await Promise.race([gateway.exited, Bun.sleep(0)]);
      if (died !== undefined) findings.push(`the gateway died with ${died}:\n${gateway.errors()}`);
      if (findings.length === 0) return;
      until = Math.min(until, performance.now() + SHRINK_MS);
      throw new Error(findings.slice(0, 3).join('\n'));
    });
    const numRuns = Math.ceil(REQUESTS / REQUESTS_OF_BATCH);
    const details = await fc.check(property, { seed: SEED, path: FUZZ_PATH, numRuns, unbiased: true });
    if (!details.counterexample) return;
    const shrunk = details.counterexample[0].flat().map(({ bytes }) => `  ${printable(bytes)}`);
    const again = `FUZZ_SEED=${SEED} FUZZ_PATH=${details.counterexamplePath} bun run fuzz`;
    throw new Error([details.errorInstance, 'shrunk to these requests:', ...shrunk, again].join('\n'));
  },
  20 * REQUESTS,
);

function listen(socket: net.Socket, first: string): void {
  let received = '';
  const take = (data: string) => {
    received += data;
    try {
      for (let parsed = parseCall(received); parsed; parsed = parseCall(received)) {
        received = parsed.rest;
        const { call } = parsed;
        const [marker = ''] = markersIn([call.target, ...call.headers.values(), call.body].join('\n'));
        const owner = sent.get(marker);
        report(problemWithCall(call, owner), owner, JSON.stringify([call, [...call.headers]]));
        respond(socket, call);
      }
    } catch (error) {
      report(String(error), undefined, received);
      socket.destroy();
    }
  };
  socket.on('data', (data) => take(data.toString('latin1')));
  take(first);
}

/** Sends the requests on one connection, or on another one after a response that ends it. */
async function sendAll(url: string, upstreamHost: string, requests: readonly FuzzRequest[]): Promise<void> {
  if (requests.length === 0) return;
  const connection = new RawConnection(Number(new URL(url).port));
  for (const [index, each] of requests.entries()) {
    const marker = `m${String(sentSoFar++).padStart(12, '0')}m`;
    const request = { ...each, marker, bytes: each.bytes.replaceAll(PLACEHOLDER, marker) };
    sent.set(marker, request);
    // The oldest one.
    if (sent.size > MOST_SENT) sent.delete(sent.keys().next().value ?? '');
    const { responses, rest } = await exchange(connection, request);
    const received = responses.map(({ bytes }) => bytes).join('') + rest;
    // The gateway may have closed the connection before the request arrived.
    const isLate = index > 0 && connection.isClosed && received === '';
    if (isLate) return sendAll(url, upstreamHost, requests.slice(index));
    report(problemWithResponses(responses, rest, request, upstreamHost), request, received);
    const headers = new Map(responses[0]?.headers);
    // Without a length, the end of the connection may be the end of the body, as for HTTP/1.0.
    const isDelimited = headers.has('content-length') || headers.has('transfer-encoding');
    const isKept = isDelimited && !/close/i.test(headers.get('connection') ?? '');
    if (request.isFramed && !connection.isClosed && rest === '' && isKept) continue;
    connection.reset();
    return sendAll(url, upstreamHost, requests.slice(index + 1));
  }
  connection.reset();
}

async function exchange(connection: RawConnection, { bytes, isFramed }: SentRequest) {
  connection.received = '';
  connection.send(bytes);
  const parse = () => parseResponses(connection.received, bytes.startsWith('HEAD '));
  const deadline = performance.now() + (isFramed ? RESPONSE_MS : SILENCE_MS);
  while (!connection.isClosed && !parse().responses.length && performance.now() < deadline)
    await connection.changed(deadline - performance.now());
  // For a second response, to what may have become two requests.
  if (!isFramed && !connection.isClosed) await Bun.sleep(3);
  return parse();
}

function report(problem: string | undefined, request: SentRequest | undefined, evidence: string): void {
  if (problem === undefined) return;
  const about = request ? [`request: ${printable(request.bytes)}`] : [];
  findings.push([problem, ...about, `evidence: ${printable(evidence)}`].join('\n  '));
}

/** The bytes in a form that can be pasted into a test: a JSON string, one character per byte. */
function printable(bytes: string): string {
  const shown = bytes.length > 4000 ? `${bytes.slice(0, 4000)}...(${bytes.length} bytes)` : bytes;
  const escaped = (byte: string) => `\\u00${byte.charCodeAt(0).toString(16).padStart(2, '0')}`;
  return JSON.stringify(shown).replace(/[\x7f-\xff]/g, escaped);
}
