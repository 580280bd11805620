/** Podman with a storage of its own, in a temporary folder, so that it leaves nothing on the machine. */

import { mkdtempSync } from 'node:fs';
import { chmod, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { eventually } from '../../support/eventually.ts';
import { type Ended, runToEnd } from '../../support/run-to-end.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const REMOVE_ALL = ['rm', '--all', '--force', '--time', '0'];

export class Podman implements AsyncDisposable {
  readonly folder = mkdtempSync(`${tmpdir()}/podman-`);
  readonly #command = [
    'podman',
    // crun, the usual one, does not start on every kernel.
    ...['--runtime', 'runc', '--events-backend', 'none'],
    ...['root', 'runroot', 'tmpdir', 'network-config-dir'].flatMap((name) => [
      `--${name}`,
      `${this.folder}/${name}`,
    ]),
  ];
  /** An interrupted run skips the disposal, and would leave a machine that runs with all rights. */
  readonly #onSignal = (signal: NodeJS.Signals) => {
    Bun.spawnSync([...this.#command, ...REMOVE_ALL], { stdio: ['ignore', 'ignore', 'ignore'] });
    Bun.spawnSync(['umount', `${this.folder}/root/overlay`], { stderr: 'ignore' });
    // What is still mounted there may be this machine's own disk.
    Bun.spawnSync(['rm', '-r', '--one-file-system', this.folder], { stderr: 'ignore' });
    this.#ignoreSignals();
    process.kill(process.pid, signal);
  };

  constructor() {
    for (const signal of SIGNALS) process.once(signal, this.#onSignal);
  }

  #ignoreSignals(): void {
    for (const signal of SIGNALS) process.off(signal, this.#onSignal);
  }

  /** Returns what a command prints, and throws when it fails. */
  async run(...command: string[]): Promise<string> {
    const { status, output, errors } = await this.try(...command);
    if (status !== 0) throw new Error(`podman ${command[0]} ended with ${status}:\n${output}${errors}`);
    return output.trim();
  }

  try(...command: string[]): Promise<Ended> {
    // Its monitor writes a file where it is started when a container runs out of memory.
    const options = { cwd: this.folder, environment: { TMPDIR: this.folder } };
    return runToEnd([...this.#command, ...command], options);
  }

  /**
   * Writes a program that starts it, for podman-compose. Podman's own limits are higher than some machines allow, and
   * unlike Docker it would give each container a writable /tmp.
   */
  async program(): Promise<string> {
    const path = `${this.folder}/podman`;
    const limits = ['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=4096:4096'];
    const run = ['--pull', 'never', '--log-driver', 'k8s-file', '--read-only-tmpfs=false', ...limits];
    const script = [
      '#!/bin/sh',
      `[ "$1" != run ] || { shift; set -- run ${run.join(' ')} "$@"; }`,
      `exec ${this.#command.join(' ')} "$@"\n`,
    ];
    await Bun.write(path, script.join('\n'));
    await chmod(path, 0o755);
    return path;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.try(...REMOVE_ALL);
    // What cleans up after a container goes on when podman has ended, and would mount the storage again.
    const isAtRest = async () => !(await commandLines()).some((command) => command.includes(this.folder));
    await eventually(isAtRest, 'podman to clean up');
    await Bun.spawn(['umount', `${this.folder}/root/overlay`], { stderr: 'ignore' }).exited;
    await rm(this.folder, { recursive: true });
    this.#ignoreSignals();
  }
}

/** Of every process. */
async function commandLines(): Promise<string[]> {
  const processes = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  return Promise.all(processes.map((id) => readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => '')));
}
