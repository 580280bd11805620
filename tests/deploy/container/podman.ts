/** Podman with a storage of its own, in a temporary folder, so that it leaves nothing on the machine. */

import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { eventually } from '../../support/eventually.ts';
import { type Ended, runToEnd } from '../../support/run-to-end.ts';

/** Podman's own limits are higher than some machines allow. An interrupted test leaves no container for longer. */
export const RUN_OPTIONS = [
  ...['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=4096:4096'],
  ...['--pull', 'never', '--log-driver', 'k8s-file', '--timeout', '1200'],
];

export class Podman implements AsyncDisposable {
  readonly folder = mkdtempSync(`${tmpdir()}/podman-`);
  readonly #options = [
    // crun, the usual one, does not start on every kernel.
    ...['--runtime', 'runc', '--events-backend', 'none'],
    ...['root', 'runroot', 'tmpdir', 'network-config-dir'].flatMap((name) => [
      `--${name}`,
      `${this.folder}/${name}`,
    ]),
  ];
  /** For podman-compose. Unlike Docker, Podman gives a container a writable /tmp. */
  readonly composeOptions = [
    `--podman-args=${this.#options.join(' ')}`,
    `--podman-run-args=${[...RUN_OPTIONS, '--read-only-tmpfs=false'].join(' ')}`,
  ];

  /** Returns what a command prints, and throws when it fails. */
  async run(...command: string[]): Promise<string> {
    const { status, output, errors } = await this.try(...command);
    if (status !== 0) throw new Error(`podman ${command[0]} ended with ${status}:\n${output}${errors}`);
    return output.trim();
  }

  try(...command: string[]): Promise<Ended> {
    // Its monitor writes a file where it is started when a container runs out of memory.
    const options = { cwd: this.folder, environment: { TMPDIR: this.folder } };
    return runToEnd(['podman', ...this.#options, ...command], options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.try('rm', '--all', '--force', '--time', '0');
    // What cleans up after a container goes on when podman has ended, and would mount the storage again.
    const isAtRest = async () => (await runToEnd(['pgrep', '--full', this.folder])).status === 1;
    await eventually(isAtRest, 'podman to clean up');
    await runToEnd(['umount', `${this.folder}/root/overlay`]);
    await rm(this.folder, { recursive: true });
  }
}
