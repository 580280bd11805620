/** A real Prometheus, started by the test with the example configuration, and gone after it. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { program } from '../../support/requirements.ts';

export const PROMETHEUS = program('prometheus');
export const MONITORING = new URL('../../../deploy/monitoring/', import.meta.url).pathname;

type Labels = Readonly<Record<string, string>>;
type Sample = { readonly metric: Labels; readonly value: readonly [at: number, figure: string] };
type Group = { readonly rules: readonly { name: string; query: string; health: string }[] };

/**
 * It is in a hurry, and scrapes the gateway as the only one of its machine.
 *
 * @param gateway host and port of its metrics
 * @param exporter host and port of the blackbox exporter
 */
export async function startPrometheus(gateway: string, exporter: string) {
  const folder = await mkdtemp(`${tmpdir()}/prometheus-`);
  const address = `127.0.0.1:${await freePorts(1)}`;
  const configuration = (await Bun.file(`${MONITORING}prometheus.yml`).text())
    .replaceAll('15s', '250ms')
    .replace('- alerts.yml', `- ${MONITORING}alerts.yml`)
    .replace('["127.0.0.1:9464"]', `["${gateway}"]\n        labels: { machine: vm1 }`)
    .replace('127.0.0.1:9115', exporter);
  await Bun.write(`${folder}/prometheus.yml`, configuration);
  const options = [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`];
  const command = [PROMETHEUS.name, ...options, `--web.listen-address=${address}`];
  const server = Bun.spawn(command, { stdio: ['ignore', 'ignore', 'ignore'] });
  const isReady = async () => (await fetch(`http://${address}/-/ready`).catch(() => undefined))?.ok;
  await eventually(isReady, 'Prometheus to be ready');

  const ask = async (path: string, parameters = {}) => {
    const query = new URLSearchParams(parameters);
    return Object(await (await fetch(`http://${address}/api/v1/${path}?${query}`)).json()).data;
  };
  return {
    query: async (query: string): Promise<readonly Sample[]> => (await ask('query', { query })).result,
    /** The labels of every series that a selector has found so far. */
    series: (selector: string): Promise<readonly Labels[]> => ask('series', { 'match[]': selector }),
    groups: async (): Promise<readonly Group[]> => (await ask('rules')).groups,
    async [Symbol.asyncDispose]() {
      server.kill('SIGKILL');
      await server.exited;
      await rm(folder, { recursive: true });
    },
  };
}
