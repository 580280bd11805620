import { expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { describeWith, machine, program } from '../support/requirements.ts';

const TWO_CORES = machine('two cores', navigator.hardwareConcurrency >= 2);
const REQUIREMENTS = [program('taskset'), program('wrk'), program('nginx'), TWO_CORES];

/** The figures of a line in the table under this heading, without the contender's title. */
function figuresOf(page: string, heading: string, title: string): number[] {
  const [, table = ''] = page.split(`## ${heading}\n`);
  const [line = ''] = table.split('\n').filter((each) => each.startsWith(`| ${title} |`));
  return line.split('|').slice(2, -1).map(Number);
}

describeWith(REQUIREMENTS, 'bun run bench --quick', () => {
  it('measures the gateway beside another, and shows it as tables and a picture', async () => {
    const folder = await mkdtemp(`${tmpdir()}/bench-test-`);
    try {
      const command = new URL('../bench/bench.ts', import.meta.url).pathname;
      const options = ['--quick', '--only=gateway,floor', '--rows=models,range', `--results=${folder}`];
      const bench = Bun.spawn([process.execPath, command, ...options], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const [output, errors] = await Promise.all([bench.stdout.text(), bench.stderr.text()]);
      expect({ code: await bench.exited, errors, output: bench.exitCode ? output : '' }).toEqual({
        code: 0,
        errors: '',
        output: '',
      });
      const page = await Bun.file(`${folder}/table.md`).text();
      expect(page).not.toContain('left out');
      for (const title of ['this gateway', 'by hand: `Bun.serve` and `fetch`']) {
        const costs = figuresOf(page, 'CPU time', title);
        expect(costs).toHaveLength(3);
        const [models = 0, range = 0, peakMb = 0] = costs;
        for (const microseconds of [models, range]) expect(microseconds).toBeWithin(1, 1e6);
        expect(peakMb).toBeWithin(5, 1000);
        for (const row of ['models', '48 KB range']) {
          const [rate = 0, busyPercent = 0, p50Ms = 0] = figuresOf(page, `Under load: ${row}`, title);
          expect(rate).toBePositive();
          expect(busyPercent).toBeWithin(0.1, 130);
          expect(p50Ms).toBePositive();
        }
      }
      const picture = await Bun.file(`${folder}/cost.svg`).text();
      expect(picture).toStartWith('<svg ');
      expect(picture.match(/<rect /g)).toHaveLength(2);
    } finally {
      await rm(folder, { recursive: true });
    }
  }, 60_000);
});
