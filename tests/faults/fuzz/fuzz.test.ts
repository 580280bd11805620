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
const SHRINK_MS = 60_000;
/** A complete request must get its response within this. */
const RESPONSE_MS = 20_000;
/** Nobody knows whether the gateway waits for the rest of an incomplete one. */
const SILENCE_MS = 60;
/** The token of the control, a session check that has to succeed after each batch. */
const CONTROL_TOKEN = 'acc.control.200-0';

/** By marker, the requests of this batch and of the one before, whose calls may still arrive. */
let sent = new Map<string, SentRequest>();
let before = sent;
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
      [findings, before, sent] = [[], sent, new Map()];
      await Promise.all(connections.map((requests) => sendAll(gateway.url, host, requests)));
      await checkSession(gateway.url);
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
    const shrunk = details.counterexample[0].map((requests) =>
      requests.map(({ bytes }) => `  ${printable(bytes)}`).join('\n'),
    );
    const again = `FUZZ_SEED=${SEED} FUZZ_PATH=${details.counterexamplePath} bun run fuzz`;
    throw new Error([details.errorInstance, 'shrunk to these connections:', ...shrunk, again].join('\n'));
  },
  20 * REQUESTS,
);

/** What a signed-in user sees. */
async function checkSession(gatewayUrl: string): Promise<void> {
  const headers = { origin: ORIGIN, cookie: `svc_music_access=${CONTROL_TOKEN}` };
  const response = await fetch(`${gatewayUrl}/api/auth/session`, { headers, keepalive: false });
  const text = `${response.status} ${await response.text()}`;
  if (!text.startsWith('200 {"upstream"')) findings.push(`a session check fails: ${text}`);
}

function listen(socket: net.Socket, first: string): void {
  let received = '';
  const take = (data: string) => {
    received += data;
    try {
      for (let parsed = parseCall(received); parsed; parsed = parseCall(received)) {
        received = parsed.rest;
        const { call } = parsed;
        const [marker = ''] = markersIn([call.target, ...call.headers.values(), call.body].join('\n'));
        const owner = sent.get(marker) ?? before.get(marker);
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

async function sendAll(gatewayUrl: string, upstreamHost: string, requests: readonly FuzzRequest[]) {
  const port = Number(new URL(gatewayUrl).port);
  let connection: RawConnection | undefined;
  for (const each of requests) {
    const marker = `m${String(sentSoFar++).padStart(12, '0')}m`;
    const request = { ...each, marker, bytes: each.bytes.replaceAll(PLACEHOLDER, marker) };
    sent.set(marker, request);
    const isReused = connection !== undefined;
    connection ??= new RawConnection(port);
    let { responses, rest } = await exchange(connection, request);
    if (isReused && connection.isClosed && responses.length === 0 && rest === '') {
      // The gateway may have closed the connection before the request arrived.
      connection = new RawConnection(port);
      ({ responses, rest } = await exchange(connection, request));
    }
    const received = responses.map(({ bytes }) => bytes).join('') + rest;
    report(problemWithResponses(responses, rest, request, upstreamHost), request, received);
    const headers = new Map(responses[0]?.headers);
    // Without a length, the end of the connection may be the end of the body, as for HTTP/1.0.
    const isDelimited = headers.has('content-length') || headers.has('transfer-encoding');
    const isKept = isDelimited && !/close/i.test(headers.get('connection') ?? '');
    if (request.isFramed && !connection.isClosed && rest === '' && isKept) continue;
    connection.reset();
    connection = undefined;
  }
  connection?.reset();
}

async function exchange(connection: RawConnection, { bytes, isFramed }: SentRequest) {
  connection.received = '';
  await connection.send(bytes);
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
