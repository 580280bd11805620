/** How many session checks the gateway serves on many connections: a figure, because it is about the machine too. */

import type { Socket } from 'bun';
import { cookieOf, requestOf } from './raw-client.ts';
import { Problems, type Report } from './report.ts';
import { startRig } from './rig.ts';

const OPENED_AT_ONCE = 100;

/** Each connection sends its next request when the last one has its response. */
export async function runThroughput(connections: number, seconds: number): Promise<Report> {
  await using rig = await startRig({ memoryMb: 256 });
  const { hostname, port } = new URL(rig.gateway.url);
  const problems = new Problems();
  let served = 0;
  let refused = 0;
  let isOver = false;
  const next = (socket: Socket<string>) => void (isOver || socket.write(socket.data));
  const open = (index: number) =>
    Bun.connect<string>({
      hostname,
      port: Number(port),
      data: requestOf('GET /api/auth/session', cookieOf(`check-${index}`)),
      socket: {
        data(socket, data) {
          if (data.includes('HTTP/1.1 200')) served++;
          else refused++;
          next(socket);
        },
        close() {
          if (!isOver) problems.add('a connection was closed');
        },
      },
    });
  const sockets: Socket<string>[] = [];
  while (sockets.length < connections)
    sockets.push(...(await Promise.all(Array.from({ length: OPENED_AT_ONCE }, (_, at) => open(at)))));
  for (const socket of sockets) next(socket);
  await Bun.sleep(seconds * 1000);
  isOver = true;
  for (const socket of sockets) socket.terminate();
  return {
    figures: { 'session checks per second': Math.round(served / seconds), 'refused with 503': refused },
    problems: problems.list(),
  };
}
