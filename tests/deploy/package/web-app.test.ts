import { afterAll, beforeAll, expect, it } from 'bun:test';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { describeInChromium } from '../../browser/chromium.ts';
import { samplesIn } from '../../browser/samples.ts';
import { startSandboxGateway } from '../../browser/sandbox-gateway.ts';
import { ROOT, readDocument } from '../../support/documents.ts';
import { SANDBOX_CLIENT } from '../../support/sandbox-account.ts';
import { STAND_IN_REACT } from './stand-in-react.ts';

const PACKAGE = 'node_modules/music-gateway-client';
/** The browser itself finds the modules of both packages. */
const IMPORTS = {
  'music-gateway-client': `/${PACKAGE}/dist/index.js`,
  oauth4webapi: '/node_modules/oauth4webapi/build/index.js',
};
const HEAD = '<!doctype html><html lang="en"><link rel="icon" href="data:,">';
const FILES = {
  'plain.html': `${HEAD}<script type="importmap">${JSON.stringify({ imports: IMPORTS })}</script>
    <script type="module">import * as page from '/page.js'; Object.assign(window, { page });</script></html>`,
  'react.html': `${HEAD}<div id="root"></div><script type="module" src="/bundle/main.js"></script></html>`,
  'main.ts': `import { mount } from 'react'; import { Studio } from './studio'; mount(Studio, document.body);`,
};
const COMPILE = `${ROOT}node_modules/.bin/tsc --strict --target es2022 --module esnext --moduleResolution bundler
  --verbatimModuleSyntax --jsx react-jsx main.ts page.ts`;

describeInChromium('the package of the client, in a web app outside of the project,', (visit) => {
  const stack = new AsyncDisposableStack();
  let origin: string;

  beforeAll(async () => {
    const folder = await mkdtemp(`${tmpdir()}/web-app-`);
    stack.defer(() => rm(folder, { recursive: true }));
    const server = Bun.serve({
      port: 0,
      hostname: 'localhost',
      async fetch(request) {
        const { pathname } = new URL(request.url);
        // The identity provider redirects to a path of the page.
        const file = Bun.file(`${folder}/${/\.\w+$/.test(pathname) ? pathname : 'react.html'}`);
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
    const react = Object.entries(STAND_IN_REACT).map(([name, code]) => [`node_modules/react/${name}`, code]);
    for (const [name, content] of [...samples, ...Object.entries(FILES), ...react])
      await Bun.write(`${folder}/${name}`, String(content));
    const run = async (command: string) =>
      (await Bun.$`${{ raw: command }}`.cwd(folder).quiet().text()).trim();
    const tarball = await run(`bash ${ROOT}src/client/pack.sh .`);
    await run(`mkdir ${PACKAGE} && tar -xzf ${tarball} -C ${PACKAGE} --strip-components=1`);
    const { dependencies } = await Bun.file(`${folder}/${PACKAGE}/package.json`).json();
    for (const name of Object.keys(dependencies))
      await symlink(`${ROOT}node_modules/${name}`, `${folder}/node_modules/${name}`);
    await run(COMPILE.replaceAll('\n', ' '));
    const [, copy = ''] = /^(cp .*live-audio-worker.js) public\/$/m.exec(text) ?? [];
    await run(`${copy} .`);
    await run(`${process.execPath} build main.ts --production --outdir bundle`);
  }, 60_000);
  afterAll(() => stack.disposeAsync());

  it('asks for the session without a bundler', async () => {
    await using visitor = await visit();
    const page = await visitor.open(`${origin}/plain.html`);
    expect(await page.evaluate('page.begin()')).toBeUndefined();
  });

  it('signs in once, generates, and plays from the first bytes as the component of its page', async () => {
    await using visitor = await visit();
    const page = await visitor.open(origin);
    const status = page.getByRole('status');
    await status.filter({ hasText: 'signed out' }).waitFor();
    await page.getByRole('button', { name: 'Sign in' }).click();
    const calls: string[] = [];
    visitor.context.on('request', (request) => {
      calls.push(`${request.method()} ${new URL(request.url()).pathname}`);
    });
    await page.getByRole('textbox', { name: 'Name' }).fill('Ada');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await status.filter({ hasText: 'signed in' }).waitFor();
    await page.waitForFunction('navigator.serviceWorker.controller');
    await page.getByRole('button', { name: 'Generate' }).click();
    const audio = `document.querySelector('audio')`;
    await page.waitForFunction(`${audio}?.currentTime > 0 && ${audio}.duration === 3`);
    expect(await page.locator('audio').getAttribute('src')).toStartWith('/live/');
    await status.filter({ hasText: 'complete' }).waitFor();
    for (const call of ['POST /api/auth/idp', 'POST /api/music/generate'])
      expect(calls.filter((each) => each === call)).toHaveLength(1);
  });
});
