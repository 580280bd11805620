/**
 * Sends the gateway requests that nobody would write, and judges each response and each call that they cause. What is
 * found is shrunk, and printed with its seed and path, which as FUZZ_SEED and FUZZ_PATH send it again. `bun run fuzz`
 * sends 200,000, or FUZZ_REQUESTS.
 */

import { it } from 'bun:test';
import type net from 'node:net';
import fc from 'fast-check';
import { startGatewayProcess } from '../../support/gateway-process.ts';
import { parseResponse, RawConnection } from '../../support/raw-http.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { request } from '../../support/world.ts';
import { batch, type FuzzRequest, PLACEHOLDER } from './requests.ts';
import { markersIn, rulesOfCall, rulesOfResponse } from './rules.ts';
import { assertEach, REQUESTS, SEED } from './run.ts';
import { parseCall, respond } from './upstream.ts';

const REQUESTS_OF_BATCH = 150;
const RESPONSE_MS = 20_000;
/** Its session check has to succeed after each batch. */
const SIGNED_IN = { cookie: 'svc_music_access=acc.control.200' };

/** The requests of this batch by marker. A request gets its response after all of its calls. */
const sent = new Map<string, FuzzRequest>();
let sentSoFar = 0;
const findings: string[] = [];

it(
  `the gateway keeps its promises under requests that nobody would write: FUZZ_SEED=${SEED}`,
  async () => {
    await using upstream = await startRawUpstream(listen);
    const addresses = { UPSTREAM_URL: `${upstream.url}/base`, IDP_URL: `${upstream.url}/idp` };
    await using gateway = await startGatewayProcess(addresses, (line) => {
      if (line.startsWith('{"level":"error"')) findings.push(line);
    });
    const { host } = new URL(upstream.url);
    const property = fc.asyncProperty(batch, async (connections) => {
      sent.clear();
      await Promise.all(connections.map((requests) => sendAll(gateway.url, host, requests)));
      const checked = await (await request(`${gateway.url}/api/auth/session`, SIGNED_IN)).text();
      if (!checked.startsWith('{"upstream"')) findings.push(`a session check fails: ${checked}`);
      const found = findings.splice(0);
      if (found.length > 0) throw new Error(found.slice(0, 3).join('\n'));
    });
    await assertEach(property, Math.ceil(REQUESTS / REQUESTS_OF_BATCH), 40 * REQUESTS);
  },
  50 * REQUESTS,
);

function listen(socket: net.Socket, first: string): void {
  let received = '';
  const take = (data: string) => {
    received += data;
    const call = parseCall(received);
    if (!call) return;
    const markers = markersIn(received);
    const [marker = ''] = markers;
    report(rulesOfCall(call, markers, sent.get(marker)), received, sent.get(marker));
    received = '';
    respond(socket, call, marker);
  };
  socket.on('data', (data) => take(data.toString('latin1')));
  take(first);
}

/** Sends the requests on one connection, or on another one after a response that ends it. */
async function sendAll(url: string, upstreamHost: string, requests: readonly FuzzRequest[]): Promise<void> {
  const open = () => new RawConnection(Number(new URL(url).port));
  let connection = open();
  for (const each of requests) {
    const marker = `m${String(sentSoFar++).padStart(12, '0')}m`;
    const own = { ...each, bytes: each.bytes.replaceAll(PLACEHOLDER, marker) };
    sent.set(marker, own);
    connection.received = '';
    connection.send(own.bytes);
    const received = () => parseResponse(connection.received, own.bytes.startsWith('HEAD '));
    const deadline = performance.now() + RESPONSE_MS;
    while (!received() && !connection.isClosed && performance.now() < deadline)
      await connection.changed(RESPONSE_MS);
    const response = received();
    const rules = response && rulesOfResponse(response, own, marker, upstreamHost);
    report(rules ?? { 'every request gets a response': true }, connection.received, own);
    if (response?.headers.every(([name, value]) => name !== 'connection' || value === 'keep-alive')) continue;
    connection.reset();
    connection = open();
  }
  connection.reset();
}

function report(rules: Readonly<Record<string, boolean>>, received: string, request?: FuzzRequest): void {
  for (const [rule, isBroken] of Object.entries(rules))
    if (isBroken) findings.push(`not "${rule}": ${JSON.stringify([request?.bytes, received], null, 2)}`);
}
