/** `bun tests/faults/costly-bodies.ts [part of a kind]`: the gateway's CPU time for each body that is made to cost it. */

import { COSTLY_BODIES, type CostlyBody, PLAIN_FORM, PLAIN_JSON } from '../support/costly-bodies.ts';
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts';
import { cpuSecondsOf } from '../support/process-status.ts';
import { request, SIGNED_IN } from '../support/world.ts';

const ROUTES = ['/api/auth/idp', '/api/music/generate'];
const REQUESTS = 30;
/** Until the gateway's code is compiled. */
const FIRST_REQUESTS = 50;
const NOBODY = 'http://127.0.0.1:1';

async function send(gateway: GatewayProcess, path: string, type: string, body: Buffer<ArrayBuffer>) {
  const headers = { 'content-type': type };
  const response = await request(gateway.url + path, { method: 'POST', cookie: SIGNED_IN, headers, body });
  await response.arrayBuffer();
  return response.status;
}

/** CPU milliseconds of one request, and the statuses that came. */
async function costOf(gateway: GatewayProcess, path: string, { type, bytes }: CostlyBody) {
  const body = bytes();
  const statuses = new Set([await send(gateway, path, type, body)]);
  const before = await cpuSecondsOf(gateway.pid);
  for (let sent = 0; sent < REQUESTS; sent++) statuses.add(await send(gateway, path, type, body));
  const after = await cpuSecondsOf(gateway.pid);
  return { cpuMs: ((after - before) * 1000) / REQUESTS, statuses };
}

async function main(part: string): Promise<void> {
  await using gateway = await startGatewayProcess({ UPSTREAM_URL: NOBODY, IDP_URL: NOBODY });
  for (const path of ROUTES) {
    console.log(`${path}\n  CPU ms  to plain text  status`);
    const plain = new Map<string, number>();
    for (const body of [PLAIN_JSON, PLAIN_FORM]) {
      const bytes = body.bytes();
      for (let sent = 0; sent < FIRST_REQUESTS; sent++) await send(gateway, path, body.type, bytes);
      plain.set(body.type, (await costOf(gateway, path, body)).cpuMs);
    }
    for (const body of COSTLY_BODIES.filter(({ kind }) => kind.includes(part))) {
      const { cpuMs, statuses } = await costOf(gateway, path, body);
      const ratio = cpuMs / (plain.get(body.type) ?? Number.NaN);
      const columns = [
        cpuMs.toFixed(1).padStart(8),
        ratio.toFixed(1).padStart(13),
        [...statuses].join('/').padStart(6),
      ];
      console.log(`${columns.join('  ')}  ${body.kind}`);
    }
  }
}

await main(process.argv[2] ?? '');
