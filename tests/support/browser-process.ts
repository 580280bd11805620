/** The programs that a browser consists of: nothing of them stays when the test is over. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { eventually } from './eventually.ts';

export interface Home extends AsyncDisposable {
  readonly path: string;
}

/** A temporary folder for profiles and caches. */
export async function createHome(): Promise<Home> {
  const path = await mkdtemp(`${tmpdir()}/browser-`);
  // A program that is just being killed may still write to it.
  const remove = () => rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  return { path, [Symbol.asyncDispose]: remove };
}

/** Starts a program that is killed on disposal. What it has started itself ends with it, or with its display. */
export function startProgram(
  command: readonly [string, ...string[]],
  { path: HOME }: Home,
  environment: Readonly<Record<string, string>> = {},
) {
  const output = Bun.file(`${HOME}/${command[0]}.log`);
  const child = Bun.spawn([...command], {
    env: { ...process.env, HOME, ...environment },
    stdin: 'ignore',
    stdout: output,
    stderr: output,
  });
  return {
    /** Waits until the program has printed this, and returns what the first group matches. */
    async printed(pattern: RegExp): Promise<string> {
      const find = async () => {
        const text = await output.text();
        if (child.exitCode !== null) throw new Error(`${command[0]} has ended: ${text}`);
        return pattern.exec(text)?.[1];
      };
      return eventually(find, `${command[0]} to print ${pattern}`);
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await child.exited;
    },
  };
}
