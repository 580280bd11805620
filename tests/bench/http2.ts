/** What HTTP/2 costs in front, where a balancer ends TLS and speaks HTTP/1.1 to the contender. */

import { cpuOf, measureRequests, startBalancer } from './balancer.ts';
import type { Contender } from './contenders.ts';
import { OTHER_CORE, type Place, spawnOn, start } from './processes.ts';
import { MODELS_ROW, PROXY_ROW, type Row } from './rows.ts';

/** As many requests at once in both. */
const SHAPES = [
  { connections: 64, streams: 1 },
  { connections: 4, streams: 16 },
];

export const HTTP2 = {
  id: 'http2',
  title: 'HTTP/2 and TLS in front, at a balancer: what each request takes',
  columns: ['', 'connections × streams', 'a second', 'CPU µs: contender', 'balancer'],
  contenders: ['gateway', 'bare', 'hono-bun'],
  needs: ['haproxy', 'h2load'],
  lines: measureHttp2,
};

/** The balancer shares its core with the load and the upstream, so requests a second tell little here, too. */
async function measureHttp2(contender: Contender, place: Place, isQuick: boolean): Promise<string[][]> {
  await using running = await start(contender, place);
  await using balancer = await startBalancer([running], place);
  const account = async () => ({ contender: await cpuOf([running]), balancer: await cpuOf([balancer]) });
  const lines: string[][] = [];
  for (const row of [MODELS_ROW, PROXY_ROW]) {
    for (const shape of SHAPES) {
      const load = (seconds: number) =>
        loadOverHttp2(row, balancer.tlsUrl, shape, seconds * (isQuick ? 500 : 5000));
      const { each, perSecond } = await measureRequests(load, account, isQuick);
      const name = `${contender.title}: ${row.title}`;
      const figures = [perSecond, each('contender'), each('balancer')];
      lines.push([name, `${shape.connections} × ${shape.streams}`, ...figures]);
    }
  }
  return lines;
}

/** @throws Error when a response has another status than 2xx, or the protocol is another one */
async function loadOverHttp2(
  row: Row,
  url: string,
  { connections, streams }: (typeof SHAPES)[number],
  requests: number,
) {
  const headers = Object.entries(row.headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const options = [`-c${connections}`, `-m${streams}`, `-n${requests}`, ...headers];
  const output = await spawnOn(OTHER_CORE, ['h2load', ...options, url + row.path]).stdout.text();
  const perSecond = Number(/^finished in .*, ([\d.]+) req\/s/m.exec(output)?.[1]);
  const isRight = output.includes(`status codes: ${requests} 2xx`) && output.includes('protocol: h2\n');
  if (!isRight) throw new Error(`${row.id}: h2load got other responses: ${output.slice(-700)}`);
  return { requests, seconds: requests / perSecond };
}
