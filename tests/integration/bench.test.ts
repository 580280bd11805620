import { expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { describeWith, machine, program } from '../support/requirements.ts';

const TWO_CORES = machine('two cores', navigator.hardwareConcurrency >= 2);
const REQUIREMENTS = [program('taskset'), program('wrk'), program('nginx'), TWO_CORES];

const positive = Type.Number({ exclusiveMinimum: 0 });
const Results = Type.Object({
  problems: Type.Array(Type.String(), { maxItems: 0 }),
  leftOut: Type.Array(Type.String(), { maxItems: 0 }),
  measurements: Type.Array(
    Type.Object({
      work: Type.String(),
      contender: Type.String(),
      cpuMicroseconds: Type.Object({ median: Type.Number({ minimum: 1, maximum: 1e6 }) }),
      requestsPerSecond: Type.Object({ median: positive }),
      p50Ms: Type.Object({ median: positive }),
      busy: Type.Object({ median: Type.Number({ exclusiveMinimum: 0, maximum: 1.3 }) }),
      peakMb: Type.Number({ minimum: 5, maximum: 1000 }),
    }),
  ),
});

describeWith(REQUIREMENTS, 'bun run bench --quick', () => {
  it('measures the gateway beside another, and shows it as tables and a plot', async () => {
    const folder = await mkdtemp(`${tmpdir()}/bench-test-`);
    try {
      const command = new URL('../bench/bench.ts', import.meta.url).pathname;
      const options = ['--quick', '--only=gateway,floor', '--rows=models,range', `--results=${folder}`];
      const bench = Bun.spawn([process.execPath, command, ...options], {
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'pipe',
      });
      const [output, errors] = await Promise.all([bench.stdout.text(), bench.stderr.text()]);
      expect({ code: await bench.exited, errors, output: bench.exitCode ? output : '' }).toEqual({
        code: 0,
        errors: '',
        output: '',
      });
      const results = Value.Parse(Results, await Bun.file(`${folder}/results.json`).json());
      expect(results.measurements.map(({ work, contender }) => `${work} ${contender}`)).toEqual([
        'models gateway',
        'models floor',
        'range gateway',
        'range floor',
      ]);
      expect(await Bun.file(`${folder}/table.md`).text()).toMatch(/^\| this gateway \| \d+/m);
      expect(await Bun.file(`${folder}/cost.svg`).text()).toStartWith('<svg ');
    } finally {
      await rm(folder, { recursive: true });
    }
  }, 60_000);
});
