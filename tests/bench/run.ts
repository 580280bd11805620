/** The whole run: the line-up row by row, then what needs processes of its own. */

import { cpus, loadavg, release } from 'node:os';
import { freePorts } from '../support/free-ports.ts';
import { HELD_CONTENDERS, type Held, measureHeld } from './held.ts';
import { startLineUp } from './line-up.ts';
import { type Measurement, measure } from './measure.ts';
import type { Options } from './options.ts';
import { type Plan, planOf } from './plan.ts';
import type { Results } from './results.ts';
import { measureStarts, START_CONTENDERS, type Start } from './starts.ts';
import { startUpstream, type Upstream } from './upstream.ts';
import { versions } from './versions.ts';

interface Setting {
  readonly plan: Plan;
  readonly upstream: Upstream;
  readonly folder: string;
  /** The first of as many as contenders, or starts of one of them. */
  readonly firstPort: number;
  readonly problems: string[];
  readonly log: (line: string) => void;
}

export async function run(options: Options, folder: string, log: (line: string) => void): Promise<Results> {
  const [loadBefore = 0] = loadavg();
  const plan = planOf(options);
  const port = await freePorts(1 + Math.max(plan.contenders.length, plan.starts));
  await using upstream = await startUpstream(`${folder}/upstream`, port);
  const setting = { plan, upstream, folder, firstPort: port + 1, problems: [], log };
  const { measurements, leftOut } = await measureLineUp(setting);
  const { held, starts } = await measureAlone(setting);
  return {
    date: new Date().toISOString().slice(0, 10),
    machine: `${cpus()[0]?.model ?? 'unknown processor'}, ${cpus().length} cores, Linux ${release()}`,
    loadBefore,
    quick: options.quick,
    rounds: plan.common.pace.rounds,
    versions: versions(),
    leftOut,
    problems: setting.problems,
    measurements,
    held,
    starts,
  };
}

async function measureLineUp({ plan, upstream, folder, firstPort, problems, log }: Setting) {
  const { contenders, common, side } = plan;
  const works = [...common.works, ...side.works];
  const measurements: Measurement[] = [];
  if (!works.length) return { measurements, leftOut: [] };
  await using lineUp = await startLineUp({ contenders, upstream, folder, firstPort, works });
  for (const line of [...lineUp.missing, ...lineUp.wrong]) log(`left out: ${line}`);
  problems.push(...lineUp.wrong);
  for (const stage of [common, side]) {
    for (const work of stage.works) {
      const measured = await measure(work, lineUp.running, stage.pace, folder);
      measurements.push(...measured.measurements);
      problems.push(...measured.problems);
      const costs = measured.measurements.map(
        ({ contender, cpuMicroseconds }) => `${contender} ${Math.round(cpuMicroseconds.median)}`,
      );
      log(`${work.title}, CPU us: ${costs.join(', ')}`);
    }
  }
  return { measurements, leftOut: lineUp.missing };
}

async function measureAlone({ plan, upstream, folder, firstPort, problems, log }: Setting) {
  const held: Held[] = [];
  const starts: Start[] = [];
  const unlessItFails = async (name: string, step: () => Promise<void>) => {
    log(name);
    try {
      await step();
    } catch (error) {
      problems.push(`${name}: ${error instanceof Error ? error.message : error}`);
    }
  };
  const { heldGenerations, starts: times, idleMs } = plan;
  for (const contender of plan.contenders) {
    if (heldGenerations && HELD_CONTENDERS.includes(contender.id)) {
      await unlessItFails(`${contender.id}, ${heldGenerations} held generations`, async () => {
        const { seconds } = plan.common.pace;
        const options = { generations: heldGenerations, port: firstPort, folder, seconds };
        held.push(await measureHeld(contender, options));
      });
    }
    if (times && START_CONTENDERS.includes(contender.id)) {
      await unlessItFails(`${contender.id}, ${times} starts`, async () => {
        const options = { upstreamPort: upstream.port, firstPort, folder, times, idleMs };
        starts.push(await measureStarts(contender, options));
      });
    }
  }
  return { held, starts };
}
