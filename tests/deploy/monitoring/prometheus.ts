/** A real Prometheus, started by the test with the example configuration, and gone after it. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { YAML } from 'bun';
import { freePorts } from '../../support/free-ports.ts';
import { program } from '../../support/requirements.ts';

export const PROMETHEUS = program('prometheus');

const EXAMPLE = new URL('../../../deploy/monitoring/prometheus.yml', import.meta.url).pathname;
const Example = Type.Object({
  global: Type.Object({ scrape_interval: Type.String(), evaluation_interval: Type.String() }),
  rule_files: Type.Array(Type.String()),
  /** The gateways, and what the blackbox exporter asks for. */
  scrape_configs: Type.Tuple([Type.Object({}), Type.Object({})]),
});

const Labels = Type.Record(Type.String(), Type.String());
const Sample = Type.Tuple([Type.Number(), Type.String()]);
const Vector = Type.Object({ result: Type.Array(Type.Object({ metric: Labels, value: Sample })) });
const Rule = Type.Object({ name: Type.String(), health: Type.String() });
const Rules = Type.Object({ groups: Type.Array(Type.Object({ rules: Type.Array(Rule) })) });
const Alerts = Type.Object({ alerts: Type.Array(Type.Object({ labels: Labels, state: Type.String() })) });

interface PrometheusOptions {
  /** Host and port of each gateway's metrics. */
  readonly targets: readonly string[];
  /** The URLs that the blackbox exporter asks for. */
  readonly probes: readonly string[];
  /** Host and port of the blackbox exporter. */
  readonly exporter: string;
  readonly ruleFiles: readonly string[];
  readonly intervalMs: number;
}

export type Prometheus = Awaited<ReturnType<typeof startPrometheus>>;

export async function startPrometheus(options: PrometheusOptions) {
  const folder = await mkdtemp(`${tmpdir()}/prometheus-`);
  const port = await freePorts(1);
  // JSON is YAML.
  await Bun.write(`${folder}/prometheus.yml`, JSON.stringify(await configuration(options)));
  const server = Bun.spawn(
    [
      PROMETHEUS.name,
      `--config.file=${folder}/prometheus.yml`,
      `--storage.tsdb.path=${folder}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' },
  );
  await readiness(server.stderr);

  async function ask<Schema extends TSchema>(path: string, schema: Schema, parameters = {}) {
    const url = `http://127.0.0.1:${port}/api/v1/${path}?${new URLSearchParams(parameters)}`;
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${await response.text()} (${JSON.stringify(parameters)})`);
    const { data } = Value.Parse(Type.Object({ data: Type.Unknown() }), await response.json());
    return Value.Parse(schema, data);
  }

  return {
    query: async (query: string) => (await ask('query', Vector, { query })).result,
    /** The labels of every series that a selector has found so far. */
    series: (selector: string) => ask('series', Type.Array(Labels), { 'match[]': selector }),
    rules: async () => (await ask('rules', Rules)).groups,
    /** Those that are pending or firing. */
    alerts: async () => (await ask('alerts', Alerts)).alerts,
    async [Symbol.asyncDispose]() {
      server.kill('SIGKILL');
      await server.exited;
      await rm(folder, { recursive: true });
    },
  };
}

/** The example, with other targets, each on a machine of its own, and in a hurry. */
async function configuration({ targets, probes, exporter, ruleFiles, intervalMs }: PrometheusOptions) {
  const text = await Bun.file(EXAMPLE).text();
  const example = YAML.parse(text.replace('127.0.0.1:9115', exporter));
  Value.Assert(Example, example);
  const interval = `${intervalMs}ms`;
  const machines = targets.map((target) => ({ targets: [target], labels: { machine: target } }));
  const [gateways, probed] = example.scrape_configs;
  return {
    ...example,
    global: { ...example.global, scrape_interval: interval, evaluation_interval: interval },
    rule_files: ruleFiles,
    scrape_configs: [
      { ...gateways, static_configs: machines },
      // On a busy machine a TLS handshake takes longer than the interval.
      { ...probed, scrape_interval: '2s', static_configs: [{ targets: probes }] },
    ],
  };
}

/** Resolves when it takes requests; what it writes after that is read and dropped, so that it never waits. */
function readiness(stderr: ReadableStream<Uint8Array>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  (async () => {
    let output = '';
    for await (const chunk of stderr) {
      if (output.length < 100_000) output += Buffer.from(chunk).toString();
      if (output.includes('Server is ready to receive web requests')) resolve();
    }
    reject(new Error(`prometheus ended:\n${output}`));
  })();
  return promise;
}
