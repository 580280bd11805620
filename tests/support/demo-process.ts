/** The demo as a program of its own. */

import { ROOT } from './documents.ts';
import { linesOf } from './lines-of.ts';

/** Starts it without the settings of the tests, and waits until it is there. Its disposal is Ctrl-C. */
export async function startDemo(settings: Readonly<Record<string, string>>) {
  const { PATH, HOME } = process.env;
  const demo = Bun.spawn([process.execPath, 'run', '--silent', 'demo'], {
    cwd: ROOT,
    env: { PATH, HOME, ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of linesOf(demo.stdout)) if (line.includes('Ctrl-C')) break;
  return {
    async [Symbol.asyncDispose]() {
      demo.kill('SIGINT');
      const status = await demo.exited;
      if (status !== 0) throw new Error(`The demo has ended with ${status}`);
    },
  };
}
