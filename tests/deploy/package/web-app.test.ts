import { afterAll, beforeAll, expect, it } from 'bun:test';
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import type { Page } from 'playwright-core';
import { wavSize } from '../../../src/demo/sandbox/audio/wav.ts';
import { describeInChromium } from '../../browser/chromium.ts';
import { samplesIn } from '../../browser/samples.ts';
import { startSandboxGateway } from '../../browser/sandbox-gateway.ts';
import { ROOT, readDocument } from '../../support/documents.ts';
import { runToEnd } from '../../support/run-to-end.ts';
import { SANDBOX_CLIENT } from '../../support/sandbox-account.ts';
import { STAND_IN_REACT } from './stand-in-react.ts';

const ORDER = { model: 'sandbox-music-1', prompt: 'A quiet piano at night', music_length_ms: 3_000 };
/** The browser itself finds the modules of both packages. */
const IMPORTS = {
  'music-gateway-client': '/node_modules/music-gateway-client/dist/index.js',
  oauth4webapi: '/node_modules/oauth4webapi/build/index.js',
};
const HEAD = '<!doctype html><html lang="en"><link rel="icon" href="data:,">';
const FILES = {
  'plain.html': `${HEAD}<script type="importmap">${JSON.stringify({ imports: IMPORTS })}</script>
    <script type="module">import * as page from '/page.js'; Object.assign(window, { page });</script></html>`,
  'react.html': `${HEAD}<div id="root"></div><script type="module" src="/bundle/main.js"></script></html>`,
  'main.ts': `import { mount } from 'react'; import { Studio } from './studio';
    mount(Studio, document.body);`,
  'tsconfig.json': JSON.stringify({
    compilerOptions: {
      ...{
        target: 'es2022',
        lib: ['es2022', 'dom', 'dom.iterable'],
        types: [],
        strict: true,
        skipLibCheck: false,
      },
      ...{ module: 'esnext', moduleResolution: 'bundler', jsx: 'react-jsx', verbatimModuleSyntax: true },
    },
  }),
};

describeInChromium('the package of the client, in a web app outside of the project,', (visit) => {
  const stack = new AsyncDisposableStack();
  let origin: string;
  let shown: keyof typeof FILES;

  beforeAll(async () => {
    const folder = await mkdtemp(`${tmpdir()}/web-app-`);
    stack.defer(() => rm(folder, { recursive: true }));
    const server = Bun.serve({
      port: 0,
      hostname: 'localhost',
      async fetch(request) {
        const { pathname } = new URL(request.url);
        // The identity provider redirects to a path of the page.
        const file = Bun.file(`${folder}/${/\.\w+$/.test(pathname) ? pathname : shown}`);
        return (await file.exists()) ? new Response(file) : new Response(null, { status: 404 });
      },
    });
    stack.defer(() => server.stop(true));
    origin = `http://localhost:${server.port}`;
    const gateway = stack.use(await startSandboxGateway(origin));
    const { text } = await readDocument('src/client/README.md');
    const samples = samplesIn(text, {
      // On the same site as the page, for its cookies.
      'https://api.studio.example': gateway.url.replace('127.0.0.1', 'localhost'),
      'https://studio.example': origin,
      'https://id.example': gateway.sandbox.identityProviderUrl,
      "'music-studio'": `'${SANDBOX_CLIENT.clientId}'`,
    });
    const run = async (command: string) => {
      const { status, output, errors } = await runToEnd(['sh', '-c', command], { cwd: folder });
      if (status !== 0) throw new Error(`${command}: ${output}${errors}`);
      return output.trim();
    };
    await mkdir(`${folder}/node_modules/music-gateway-client`, { recursive: true });
    const tarball = await run(`bash ${ROOT}src/client/pack.sh .`);
    await run(`tar -xzf ${tarball} -C node_modules/music-gateway-client --strip-components=1`);
    const { dependencies } = await Bun.file(
      `${folder}/node_modules/music-gateway-client/package.json`,
    ).json();
    for (const name of Object.keys(dependencies))
      await symlink(`${ROOT}node_modules/${name}`, `${folder}/node_modules/${name}`);
    for (const [name, content] of Object.entries(STAND_IN_REACT))
      await Bun.write(`${folder}/node_modules/react/${name}`, content);
    for (const name of ['page.ts', 'studio.tsx'])
      await Bun.write(`${folder}/${name}`, samples.get(name) ?? '');
    for (const [name, content] of Object.entries(FILES)) await Bun.write(`${folder}/${name}`, content);
    await run(`${ROOT}node_modules/.bin/tsc`);
    const [, copy = ''] = /^(cp .*live-audio-worker.js) public\/$/m.exec(text) ?? [];
    await run(`${copy} .`);
    await run(`${process.execPath} build main.ts --production --outdir bundle`);
  }, 60_000);
  afterAll(() => stack.disposeAsync());

  /** Goes through the identity provider's form, and comes back to the redirect URI. */
  async function passForm(page: Page, name: string): Promise<void> {
    await page.getByRole('textbox', { name: 'Name' }).fill(name);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL(/\/callback/);
  }
  const waitForSound = (page: Page) => {
    const audio = `document.querySelector('audio')`;
    return page.waitForFunction(`${audio}?.currentTime > 0 && ${audio}.duration === 3`);
  };

  it('signs in, generates and plays without a bundler', async () => {
    shown = 'plain.html';
    await using visitor = await visit();
    const page = await visitor.open(origin);
    expect(await page.evaluate('page.begin()')).toBeUndefined();
    await page.evaluate('page.signIn()');
    await passForm(page, 'Grace');
    expect(await page.evaluate('page.begin()')).toMatchObject({ name: 'Grace' });
    const size = page.evaluate(`page.order(${JSON.stringify(ORDER)}, 'a-key').then(async (generation) => {
      const audio = document.body.appendChild(new Audio());
      const { size } = await new Response(generation.body).blob();
      await page.play(audio, generation.creationId);
      return size;
    })`);
    expect(await size).toBe(wavSize(ORDER.music_length_ms));
    await waitForSound(page);
  });

  it('signs in once, generates, and plays from the first bytes as the component of its page', async () => {
    shown = 'react.html';
    await using visitor = await visit();
    const page = await visitor.open(origin);
    const status = page.getByRole('status');
    await status.filter({ hasText: 'signed out' }).waitFor();
    await page.getByRole('button', { name: 'Sign in' }).click();
    const calls: string[] = [];
    visitor.context.on('request', (request) => {
      calls.push(`${request.method()} ${new URL(request.url()).pathname}`);
    });
    await passForm(page, 'Ada');
    await status.filter({ hasText: 'signed in' }).waitFor();
    expect(calls.filter((call) => call === 'POST /api/auth/idp')).toHaveLength(1);
    await page.waitForFunction('navigator.serviceWorker.controller');
    await page.getByRole('button', { name: 'Generate' }).click();
    await waitForSound(page);
    expect(await page.locator('audio').getAttribute('src')).toStartWith('/live/');
    await status.filter({ hasText: 'complete' }).waitFor();
    expect(calls.filter((call) => call === 'POST /api/music/generate')).toHaveLength(1);
  });
});
