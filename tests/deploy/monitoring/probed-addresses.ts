/** Two addresses that prometheus-blackbox-exporter asks for, as it would ask for those of production. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { makeCertificate } from '../../support/certificate.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { program } from '../../support/requirements.ts';

export const BLACKBOX_EXPORTER = program('prometheus-blackbox-exporter');

export type ProbedAddresses = Awaited<ReturnType<typeof startProbedAddresses>>;

export async function startProbedAddresses() {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(`${tmpdir()}/probed-`);
  stack.defer(() => rm(folder, { recursive: true }));
  const [cert, key] = [`${folder}/certificate.pem`, `${folder}/key.pem`];
  await makeCertificate(folder, 5);
  const tls = { cert: Bun.file(cert), key: Bun.file(key) };
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', tls, fetch: () => new Response() });
  stack.defer(() => server.stop(true));

  const port = await freePorts(2);
  await Bun.write(`${folder}/blackbox.yml`, 'modules: { http_2xx: { prober: http } }\n');
  const options = [`--config.file=${folder}/blackbox.yml`, `--web.listen-address=127.0.0.1:${port}`];
  // Its own half a second less than Prometheus waits would leave nothing of a scrape in a hurry.
  const exporter = Bun.spawn([BLACKBOX_EXPORTER.name, ...options, '--timeout-offset=0'], {
    env: { SSL_CERT_FILE: cert },
    stdio: ['ignore', 'ignore', 'ignore'],
  });
  stack.defer(async () => {
    exporter.kill('SIGKILL');
    await exporter.exited;
  });
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/-/healthy`).then(
      ({ ok }) => ok,
      () => false,
    );
  await eventually(isReady, 'the blackbox exporter to listen');
  const started = stack.move();
  return {
    /** Host and port of the exporter. */
    exporter: `127.0.0.1:${port}`,
    /** It responds, and its certificate expires in five days. */
    expiring: `https://127.0.0.1:${server.port}/`,
    /** Nothing listens there. */
    silent: `https://127.0.0.1:${port + 1}/`,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}
