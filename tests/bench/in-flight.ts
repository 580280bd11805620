/** What generations in flight cost: the memory of each, and the delay of a session check beside them. */

import { eventually } from '../support/eventually.ts';
import { accountOf } from './accounting.ts';
import type { Contender } from './contenders.ts';
import { load } from './load.ts';
import { type Place, start } from './processes.ts';
import { cookies, GENERATE_ROW, SESSION_ROW } from './rows.ts';
import { number } from './statistics.ts';

export const IN_FLIGHT = {
  id: 'in-flight',
  title: 'Generations in flight',
  columns: ['', 'in flight', 'KB each', 'session check before, p50 / p99 ms', 'meanwhile'],
  contenders: ['gateway', 'floor'],
  needs: [],
  lines: measureInFlight,
};

async function measureInFlight(contender: Contender, place: Place, isQuick: boolean): Promise<string[][]> {
  const generations = isQuick ? 200 : 4000;
  const released = Promise.withResolvers<void>();
  let count = 0;
  await using upstream = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 255,
    fetch: async ({ url, headers }) => {
      if (!url.endsWith('/v1/music')) return Response.json({ data: {} });
      count++;
      await released.promise;
      return new Response(headers.get('idempotency-key'));
    },
  });
  await using running = await start(contender, { ...place, upstreamUrl: upstream.url.origin });
  const checkSession = async () => {
    const { p50Ms, p99Ms } = await load({ ...SESSION_ROW, connections: 1 }, running.url, isQuick ? 1 : 2);
    return `${number(p50Ms)} / ${number(p99Ms)}`;
  };
  const before = await checkSession();
  const { rssMb } = await accountOf(running.pid);
  const responses: Promise<string>[] = [];
  while (responses.length < generations) {
    // A listener's queue does not take all of them at once.
    for (let opened = 0; opened < 100; opened++) {
      responses.push(generate(running.url, `generation-${responses.length}`));
    }
    await eventually(() => count === responses.length, `${responses.length} generations in flight`);
  }
  const inFlight = await accountOf(running.pid);
  const meanwhile = await checkSession();
  released.resolve();
  const wrong = (await Promise.all(responses)).filter((text, index) => text !== `generation-${index}`);
  if (wrong.length) throw new Error(`${wrong.length} of ${generations} generations got a wrong response`);
  const kilobytesEach = ((inFlight.rssMb - rssMb) * 1024) / generations;
  return [[contender.title, `${generations}`, number(kilobytesEach), before, meanwhile]];
}

/** @returns the audio or the error; each generation has an idempotency key and a session of its own */
function generate(url: string, key: string): Promise<string> {
  const { path, body, headers } = GENERATE_ROW;
  const own = { ...headers, cookie: cookies(key), 'idempotency-key': key };
  const sent = fetch(url + path, { method: 'POST', body, headers: own, keepalive: false });
  return sent.then((response) => response.text()).catch(String);
}
