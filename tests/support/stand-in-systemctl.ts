/**
 * Stands in for systemctl where no systemd runs: `start`, `stop`, `is-active`, `cat`, `enable` and `disable` of the
 * unit in `deploy/`, whose folders are below ROOT. It does what the unit says of folder, environment and command.
 */

import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';

const UNIT = new URL('../../deploy/music-gateway@.service', import.meta.url);
const ROOT = process.env['ROOT'] ?? '';
const LATEST_STOP_MS = 60_000;

const [verb = '', unit = ''] = process.argv.slice(2).filter((argument) => !argument.startsWith('-'));
const instance = unit.replace(/^.*@/, '');
const pidFile = `${ROOT}/${unit}.pid`;
const text = (await readFile(UNIT, 'utf8')).replaceAll('%i', instance);

/** The values of a directive, in their order. */
function values(directive: string): string[] {
  return [...text.matchAll(new RegExp(`^${directive}=(.*)$`, 'gm'))].map(([, value = '']) => value);
}

async function environmentOf(file: string): Promise<string[]> {
  const lines = (await readFile(`${ROOT}${file.replace(/^-/, '')}`, 'utf8')).split('\n');
  return lines.filter((line) => line.includes('='));
}

async function runningPid(): Promise<number | undefined> {
  const pid = await readFile(pidFile, 'utf8').catch(() => '');
  const state = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => 'Z');
  // Nobody waits for a process here whose parent has ended, so it may stay as a zombie.
  return pid && !/^\d+ \(.*\) Z|^Z/.test(state) ? Number(pid) : undefined;
}

async function start(): Promise<void> {
  const own = values('Environment').flatMap((line) => line.split(' '));
  const fromFiles = await Promise.all(values('EnvironmentFile').map(environmentOf));
  const pairs = [...own, ...fromFiles.flat()].map((line) => line.split(/=(.*)/s).slice(0, 2));
  const [program = '', ...parameters] = (values('ExecStart')[0] ?? '').split(' ');
  const log = openSync(`${ROOT}/${unit}.log`, 'a');
  const child = spawn(program === '/usr/local/bin/bun' ? process.execPath : program, parameters, {
    cwd: ROOT + values('WorkingDirectory')[0],
    env: Object.fromEntries(pairs),
    stdio: ['ignore', log, log],
    detached: true,
  });
  closeSync(log);
  await Bun.write(pidFile, String(child.pid));
  child.unref();
}

async function stop(): Promise<void> {
  const pid = await runningPid();
  if (pid === undefined) return;
  process.kill(pid, 'SIGTERM');
  const latest = performance.now() + LATEST_STOP_MS;
  while ((await runningPid()) !== undefined) {
    if (performance.now() > latest) process.kill(pid, 'SIGKILL');
    await Bun.sleep(20);
  }
}

const verbs: Record<string, () => Promise<unknown>> = {
  start,
  stop,
  'is-active': async () => process.exit((await runningPid()) === undefined ? 3 : 0),
  cat: async () => console.log(text),
  enable: () => Bun.write(`${ROOT}/${unit}.enabled`, ''),
  disable: () => rm(`${ROOT}/${unit}.enabled`, { force: true }),
};
const run = verbs[verb];
if (!run) throw new Error(`this stand-in does not know ${verb}`);
await run();
// The gateway keeps its own files open; nothing here does.
process.exit(0);
