/**
 * Ports for servers that must know theirs before they start. Each process that runs tests has a range of its own, so
 * that between the check and the use of a port no other takes it; the kernel's own ports begin above all ranges.
 */

import net from 'node:net';

const LOWEST = 20_000;
const RANGES = 120;
const RANGE = 100;

let range: number | undefined;
let used = 0;

/** The first of `count` free ports in a row. */
export async function freePorts(count: number): Promise<number> {
  range ??= await ownRange();
  for (let attempt = 0; attempt < RANGE; attempt++) {
    if (used + count >= RANGE) used = 0;
    const first = range + 1 + used;
    used += count;
    const servers = await Promise.all(Array.from({ length: count }, (_, index) => listen(first + index)));
    await Promise.all(servers.map((server) => server && new Promise((closed) => server.close(closed))));
    if (!servers.includes(undefined)) return first;
  }
  throw new Error(`no ${count} free ports in a row`);
}

/** The first port of a range stays taken until this process ends, which keeps the others away. */
async function ownRange(): Promise<number> {
  for (let index = 0; index < RANGES; index++) {
    const first = LOWEST + ((process.pid + index) % RANGES) * RANGE;
    const server = await listen(first);
    server?.unref();
    if (server) return first;
  }
  throw new Error('no range of ports is free');
}

/** Undefined when the port is taken. */
function listen(port: number): Promise<net.Server | undefined> {
  return new Promise((resolve) => {
    const server = net.createServer().once('error', () => resolve(undefined));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => resolve(server));
  });
}
