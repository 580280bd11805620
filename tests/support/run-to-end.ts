/** Runs a program to its end. */

export type Ended = Awaited<ReturnType<typeof runToEnd>>;

/** Without input; the environment is this process's own, with what is given. */
export async function runToEnd(
  command: readonly string[],
  { cwd = '.', environment = {} }: { cwd?: string; environment?: Readonly<Record<string, string>> } = {},
) {
  const child = Bun.spawn([...command], {
    cwd,
    env: { ...process.env, ...environment },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [output, errors, status] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  return { status, output, errors };
}
