/** A real Prometheus, started by the test with the example configuration, and gone after it. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { program } from '../../support/requirements.ts';
import { MONITORING } from './alerts-and-dashboard.ts';

export const PROMETHEUS = program('prometheus');

const Labels = Type.Record(Type.String(), Type.String());
const Sample = Type.Tuple([Type.Number(), Type.String()]);
const Vector = Type.Object({ result: Type.Array(Type.Object({ metric: Labels, value: Sample })) });
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
  const options = { 'config.file': 'prometheus.yml', 'storage.tsdb.path': 'data' };
  const server = Bun.spawn(
    [
      PROMETHEUS.name,
      ...Object.entries(options).map(([name, file]) => `--${name}=${folder}/${file}`),
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: ['ignore', 'ignore', 'ignore'] },
  );
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  await eventually(isReady, 'Prometheus to be ready');

  async function ask<Schema extends TSchema>(path: string, schema: Schema, parameters = {}) {
    const response = await fetch(
      `http://127.0.0.1:${port}/api/v1/${path}?${new URLSearchParams(parameters)}`,
    );
    if (!response.ok) throw new Error(`${await response.text()} (${JSON.stringify(parameters)})`);
    const { data } = Value.Parse(Type.Object({ data: Type.Unknown() }), await response.json());
    return Value.Parse(schema, data);
  }

  return {
    query: async (query: string) => (await ask('query', Vector, { query })).result,
    /** The labels of every series that a selector has found so far. */
    series: (selector: string) => ask('series', Type.Array(Labels), { 'match[]': selector }),
    rules: async () => (await ask('rules', Rules)).groups.flatMap(({ rules }) => rules),
    async [Symbol.asyncDispose]() {
      server.kill('SIGKILL');
      await server.exited;
      await rm(folder, { recursive: true });
    },
  };
}
