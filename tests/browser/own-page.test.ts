import { expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { ROOT, readDocument, section } from '../support/documents.ts';
import { freePorts } from '../support/free-ports.ts';
import { describeInChromium } from './chromium.ts';

/** The code blocks of the section, in their order, with the addresses of this test. */
async function documentedSteps(port: number) {
  const text = section(
    await readDocument('src/client/README.md'),
    '## From a clone to sound in your own page',
  );
  const blocks = Array.from(text.matchAll(/^```\w+\n([\s\S]*?)^```$/gm), ([, block = '']) =>
    block
      .replaceAll('npx --yes bun@1.4.5', process.execPath)
      .replaceAll('../music-gateway', ROOT)
      .replaceAll('4175', String(port))
      .replaceAll('4176', String(port + 1))
      .replaceAll('5173', String(port + 6)),
  );
  const [startDemo = '', installClient = '', page = '', script = '', serve = ''] = blocks;
  expect(blocks).toHaveLength(5);
  return { startDemo, installClient, files: [page, script], serve };
}

/** Runs a command that goes on, and waits until it has printed a text. */
async function startCommand(command: string, cwd: string, text: string, environment = {}) {
  const { PATH, HOME } = process.env;
  // In a process group of its own, because the shell does not pass on signals.
  const running = Bun.spawn(['sh', '-c', command], {
    cwd,
    detached: true,
    env: { PATH, HOME, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  for await (const chunk of running.stdout) {
    printed += Buffer.from(chunk).toString();
    if (printed.includes(text)) break;
  }
  expect(printed).toContain(text);
  return {
    async [Symbol.asyncDispose]() {
      process.kill(-running.pid, 'SIGTERM');
      await running.exited;
    },
  };
}

describeInChromium('a page of one’s own in five minutes', (visit) => {
  it('signs in and plays, made word for word in an empty folder', async () => {
    await using stack = new AsyncDisposableStack();
    const folder = await mkdtemp(`${tmpdir()}/own-page-`);
    stack.defer(() => rm(folder, { recursive: true }));
    const port = await freePorts(7);
    const { startDemo, installClient, files, serve } = await documentedSteps(port);
    stack.use(await startCommand(startDemo, ROOT, 'Ctrl-C', { PORT: String(port) }));
    expect(await Bun.spawn(['sh', '-c', installClient], { cwd: folder }).exited).toBe(0);
    for (const file of files) {
      const [name = ''] = /[\w-]+\.(?:html|js)/.exec(file) ?? [];
      await Bun.write(`${folder}/${name}`, file);
    }
    const address = `http://localhost:${port + 6}`;
    stack.use(await startCommand(serve, folder, address));

    const visitor = stack.use(await visit());
    visitor.expectProblem(/status of 401/);
    const page = await visitor.open(address);
    const press = (name: string) => page.getByRole('button', { name }).click();
    await page.getByText('Signed out').waitFor();
    await press('Generate');
    await page.getByText('You are not signed in.').waitFor();
    await press('Sign in');
    await page.getByRole('textbox', { name: 'Name' }).fill('Ada');
    await press('Sign in');
    await page.getByText('Signed in as Ada').waitFor();
    expect(page.url()).toBe(`${address}/`);
    await press('Generate');
    await page.getByText('Playing').waitFor();
    await page.waitForFunction(() => {
      const audio = document.querySelector('audio');
      return audio?.duration === 10 && audio.currentTime > 0;
    });
  }, 120_000);
});
