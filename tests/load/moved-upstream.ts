/** An upstream whose name gets another address while calls go on, as at a change of DNS. */

import { startGatewayProcess } from '../support/gateway-process.ts';
import { createFolder } from '../support/temporary-folder.ts';
import { ACCESS_ONLY, request } from '../support/world.ts';
import { Problems, type Report } from './report.ts';

/** The server at the old address stays, so that nothing but time moves the calls. */
const [OLD, NEW] = ['127.0.0.2', '127.0.0.3'];
const METHODS = ['GET', 'PUT', 'POST'];
/** Twenty calls a second of each method. */
const EVERY_MS = 50;
/** The process has a file of names of its own, and the machine keeps its one. */
const WITH_NAMES = ['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" /etc/hosts && exec "$@"'];

export async function runMove(seconds: number): Promise<Report> {
  await using stack = new AsyncDisposableStack();
  const { path: folder } = stack.use(await createFolder());
  const names = `${folder}/hosts`;
  const setAddress = (address: string) => Bun.write(names, `127.0.0.1 localhost\n${address} upstream.test\n`);
  await setAddress(OLD);

  const problems = new Problems();
  const arrived = new Set<string>();
  /** When the old server last got a call of each method. */
  const lastAt = new Map<string, number>();
  const serve = (hostname: string, port: number) =>
    stack.use(
      Bun.serve({
        hostname,
        port,
        fetch({ method, url }) {
          const call = `${method} ${new URL(url).pathname}`;
          if (arrived.has(call)) problems.add(`${call} arrived twice`);
          arrived.add(call);
          if (hostname === OLD) lastAt.set(method, performance.now());
          return new Response();
        },
      }),
    );
  const { port = 0 } = serve(OLD, 0);
  serve(NEW, port);
  const address = `http://upstream.test:${port}`;
  const gateway = stack.use(
    await startGatewayProcess({ UPSTREAM_URL: address }, undefined, [...WITH_NAMES, names]),
  );

  const call = async (method: string, round: number) => {
    const init = { method, cookie: ACCESS_ONLY, ...(method !== 'GET' && { body: 'x' }) };
    const { status } = await request(`${gateway.url}/api/upstream/v1/${round}`, init);
    if (status !== 200) problems.add(`a ${method} got ${status}`);
  };
  // The addresses are looked up first, and the connections opened: this is the worst moment to move.
  await Promise.all(METHODS.map((method) => call(method, 0)));
  await setAddress(NEW);
  const movedAt = performance.now();
  const calls: Promise<void>[] = [];
  for (let round = 1; performance.now() < movedAt + seconds * 1000; round++) {
    for (const method of METHODS) calls.push(problems.during(`a ${method}`, call(method, round)));
    await Bun.sleep(EVERY_MS);
  }
  await Promise.all(calls);
  const figures = METHODS.map((method) => {
    const last = ((lastAt.get(method) ?? Number.NaN) - movedAt) / 1000;
    return [`seconds until the last ${method} at the old address`, Math.round(last * 10) / 10];
  });
  return { figures: Object.fromEntries(figures), problems: problems.list() };
}
