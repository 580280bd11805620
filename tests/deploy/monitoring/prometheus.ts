/** A real Prometheus, started by the test with the example configuration, and gone after it. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { program } from '../../support/requirements.ts';
import { MONITORING } from './alerts-and-dashboard.ts';

export const PROMETHEUS = program('prometheus');

const Labels = Type.Record(Type.String(), Type.String());
const Sample = Type.Tuple([Type.Number(), Type.String()]);
const Samples = Type.Object({ result: Type.Array(Type.Object({ metric: Labels, value: Sample })) });
const Rule = Type.Object({ name: Type.String(), health: Type.String() });
const Rules = Type.Object({ groups: Type.Array(Type.Object({ rules: Type.Array(Rule) })) });

export type Prometheus = Awaited<ReturnType<typeof startPrometheus>>;

/**
 * It is in a hurry, and scrapes the gateway as the only one of its machine.
 *
 * @param gateway host and port of its metrics
 * @param exporter host and port of the blackbox exporter
 */
export async function startPrometheus(gateway: string, exporter: string) {
  const folder = await mkdtemp(`${tmpdir()}/prometheus-`);
  const port = await freePorts(1);
  const configuration = (await Bun.file(`${MONITORING}prometheus.yml`).text())
    .replaceAll('15s', '250ms')
    .replace('- alerts.yml', `- ${MONITORING}alerts.yml`)
    .replace('["127.0.0.1:9464"]', `["${gateway}"]\n        labels: { machine: vm1 }`)
    .replace('127.0.0.1:9115', exporter);
  await Bun.write(`${folder}/prometheus.yml`, configuration);
  const options = [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`];
  const server = Bun.spawn([PROMETHEUS.name, ...options, `--web.listen-address=127.0.0.1:${port}`], {
    stdio: ['ignore', 'ignore', 'ignore'],
  });
  const isReady = async () => (await fetch(`http://127.0.0.1:${port}/-/ready`).catch(() => undefined))?.ok;
  await eventually(isReady, 'Prometheus to be ready');

  async function ask(path: string, parameters = {}): Promise<unknown> {
    const query = new URLSearchParams(parameters);
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}?${query}`);
    return Value.Parse(Type.Object({ data: Type.Unknown() }), await response.json()).data;
  }

  return {
    query: async (query: string) => Value.Parse(Samples, await ask('query', { query })).result,
    /** The labels of every series that a selector has found so far. */
    series: async (selector: string) =>
      Value.Parse(Type.Array(Labels), await ask('series', { 'match[]': selector })),
    rules: async () => Value.Parse(Rules, await ask('rules')).groups.flatMap(({ rules }) => rules),
    async [Symbol.asyncDispose]() {
      server.kill('SIGKILL');
      await server.exited;
      await rm(folder, { recursive: true });
    },
  };
}
