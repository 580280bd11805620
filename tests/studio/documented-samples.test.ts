import { expect, it } from 'bun:test';
import { ROOT, readDocument } from '../support/documents.ts';
import { freePorts } from '../support/free-ports.ts';
import { linesOf } from '../support/lines-of.ts';
import { createFolder } from '../support/temporary-folder.ts';
import { describeInChromium } from './chromium.ts';
import { samplesIn } from './samples.ts';

const README = await readDocument('src/client/README.md');
const CLIENT = `'${ROOT}src/client`;
const START = /^DEMO_ORIGINS=(\S+) npx --yes bun@[\d.]+ run demo$/m;

/** Bundles the first sample with the others, as they are for ports beside those of the demo. Returns the files by path. */
async function bundleSamples(port: number) {
  await using folder = await createFolder();
  const samples = samplesIn(README.text, {
    ...{ 4175: `${port}`, 4176: `${port + 1}`, 5173: `${port + 6}` },
    "'music-gateway-client'": `${CLIENT}/index.ts'`,
    "'music-gateway-client/live-audio'": `${CLIENT}/live-audio/live-audio.ts'`,
  });
  for (const [name, code] of samples) await Bun.write(`${folder.path}/${name}`, code);
  const entrypoints = [`${folder.path}/main.ts`];
  const naming = { chunk: '[name]-[hash].[ext]' };
  const { outputs } = await Bun.build({ entrypoints, naming, splitting: true, target: 'browser' });
  return new Map(outputs.map((output) => [output.path.slice(1), output]));
}

/** Starts the demo as documented, and waits until it is there. */
async function startDemo(port: number) {
  const [, origins = ''] = START.exec(README.text) ?? [];
  const { PATH, HOME } = process.env;
  const demo = Bun.spawn([process.execPath, 'run', '--silent', 'demo'], {
    cwd: ROOT,
    env: { PATH, HOME, PORT: `${port}`, DEMO_ORIGINS: origins.replace('5173', `${port + 6}`) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of linesOf(demo.stdout)) if (line.includes('Ctrl-C')) break;
  return {
    async [Symbol.asyncDispose]() {
      demo.kill('SIGINT');
      await demo.exited;
    },
  };
}

describeInChromium('the code samples for web-app developers', (visit) => {
  it('sign in and play in a page of one’s own beside the demo, also after a part of it could not be loaded', async () => {
    const port = await freePorts(7);
    const files = await bundleSamples(port);
    const head = '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">';
    const html = new Blob([`${head}<script type="module" src="/main.js"></script>`], { type: 'text/html' });
    await using _ = await startDemo(port);
    await using server = Bun.serve({
      port: port + 6,
      hostname: 'localhost',
      fetch: ({ url }) => new Response(files.get(new URL(url).pathname) ?? html),
    });
    await using visitor = await visit();
    visitor.expectProblem(/status of 401/);
    visitor.expectProblem(/ERR_FAILED/);
    // It is loaded when nobody is signed in.
    const partThatSignsIn = '**/code-flow-*.js';
    await visitor.context.route(partThatSignsIn, (route) => route.abort());
    const page = await visitor.open(server.url.href);
    const press = (name: string) => page.getByRole('button', { name }).click();
    await page.getByText('Signed out').waitFor();
    await press('Generate');
    await page.getByText('You are not signed in.').waitFor();
    await press('Sign in');
    await page.getByText('A part of the page could not be loaded.').waitFor();
    await visitor.context.unroute(partThatSignsIn);
    await press('Sign in');
    await page.getByRole('textbox', { name: 'Name' }).fill('Ada');
    await press('Sign in');
    await page.getByText('Signed in as Ada').waitFor();
    expect(page.url()).toBe(server.url.href);
    await press('Generate');
    await page.getByText('Playing').waitFor();
    await page.waitForFunction(() => {
      const audio = document.querySelector('audio');
      return audio?.duration === 10 && audio.currentTime > 0;
    });
  });
});
