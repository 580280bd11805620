/** Starts the contenders that this machine can start, and keeps those that answer right. */

import { mkdir } from 'node:fs/promises';
import { wrongAnswers } from './check.ts';
import type { Contender } from './contender.ts';
import { CONTENDER_CORE, type Running, startPinned } from './running.ts';
import type { Upstream } from './upstream.ts';
import { benchPackages } from './versions.ts';
import type { Work } from './work.ts';

export interface LineUp extends AsyncDisposable {
  readonly running: ReadonlyMap<string, Running>;
  /** The title of each that this machine lacks something for, and what. */
  readonly missing: readonly string[];
  /** The title of each that is left out because it does not start or answers wrong, and how. */
  readonly wrong: readonly string[];
}

export interface LineUpOptions {
  readonly contenders: readonly Contender[];
  readonly upstream: Upstream;
  readonly folder: string;
  /** The first of as many free ports as there are contenders. */
  readonly firstPort: number;
  readonly works: readonly Work[];
}

export async function startLineUp(options: LineUpOptions): Promise<LineUp> {
  await using stack = new AsyncDisposableStack();
  const running = new Map<string, Running>();
  const missing: string[] = [];
  const wrong: string[] = [];
  const packagesProblem = installProblem(options.contenders);
  for (const [index, contender] of options.contenders.entries()) {
    const programs = contender.needs.filter((program) => !Bun.which(program));
    const reason = programs.length ? `${programs.join(', ')} is not installed` : undefined;
    const lack = reason ?? (usesBenchPackages(contender) ? packagesProblem : undefined);
    if (lack !== undefined) {
      missing.push(`${contender.title}: ${lack}`);
      continue;
    }
    const port = options.firstPort + index;
    try {
      const started = stack.use(await start(contender, options.upstream.port, port, options.folder));
      const problems = await wrongAnswers(contender, started.url, options.upstream.url, options.works);
      if (problems.length) throw new Error(`answers wrong: ${problems.join('; ')}`);
      running.set(contender.id, started);
    } catch (error) {
      wrong.push(`${contender.title}: ${error instanceof Error ? error.message : error}`);
    }
  }
  const started = stack.move();
  return { running, missing, wrong, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

export async function start(
  contender: Contender,
  upstreamPort: number,
  port: number,
  folder: string,
): Promise<Running> {
  const place = { folder: `${folder}/${contender.id}-${port}`, port, upstreamPort };
  await mkdir(place.folder, { recursive: true });
  const launch = await contender.launch(place);
  return startPinned({ ...launch, core: CONTENDER_CORE, url: `http://127.0.0.1:${port}` });
}

function usesBenchPackages({ parts }: Contender): boolean {
  return parts.some((part) => Object.hasOwn(benchPackages, part));
}

/** The packages of the others are theirs, not the gateway's: they are fetched when they are needed. */
function installProblem(contenders: readonly Contender[]): string | undefined {
  if (!contenders.some(usesBenchPackages)) return undefined;
  const { success } = Bun.spawnSync([process.execPath, 'install', '--frozen-lockfile', '--silent'], {
    cwd: import.meta.dir,
    stderr: 'inherit',
    timeout: 120_000,
  });
  return success ? undefined : 'its packages cannot be installed';
}
