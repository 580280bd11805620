import { expect, it } from 'bun:test';
import { mkdir, symlink } from 'node:fs/promises';
import { describeInChromium } from '../../studio/chromium.ts';
import { samplesIn } from '../../studio/samples.ts';
import { startSandboxGateway } from '../../studio/sandbox-gateway.ts';
import { ROOT, readDocument } from '../../support/documents.ts';
import { runToEnd } from '../../support/run-to-end.ts';
import { SANDBOX_CLIENT } from '../../support/sandbox-account.ts';
import { createFolder } from '../../support/temporary-folder.ts';

const ORDER = JSON.stringify({ model: 'sandbox-music-1', prompt: 'A quiet piano', music_length_ms: 3_000 });
const PACKAGE = '/node_modules/music-gateway-client';
/** The browser itself finds the modules of both packages. */
const IMPORTS = {
  'music-gateway-client': `${PACKAGE}/dist/index.js`,
  'music-gateway-client/live-audio': `${PACKAGE}/dist/live-audio/live-audio.js`,
  oauth4webapi: '/node_modules/oauth4webapi/build/index.js',
};
const FILES = {
  'index.html': `<!doctype html><html lang="en"><link rel="icon" href="data:,">
    <script type="importmap">${JSON.stringify({ imports: IMPORTS })}</script>
    <script type="module">
      import { UnfinishedGenerations } from 'music-gateway-client';
      import { client } from '/data.js'; import { playLive } from '/live.js';
      import { takeUp } from '/unfinished.js'; import { call } from '/gateway.js'; import '/main.js';
      Object.assign(window, { UnfinishedGenerations, client, playLive, takeUp, call });
    </script></html>`,
  'tsconfig.json': JSON.stringify({
    compilerOptions: {
      ...{ target: 'es2022', lib: ['es2022', 'dom', 'dom.iterable'], types: [] },
      ...{ strict: true, skipLibCheck: false, verbatimModuleSyntax: true },
      ...{ module: 'esnext', moduleResolution: 'bundler' },
    },
  }),
};

describeInChromium('the package of the client', (visit) => {
  it('signs in, plays from the first bytes and takes up a lost order in a web app without a bundler', async () => {
    await using stack = new AsyncDisposableStack();
    const { path: folder } = stack.use(await createFolder());
    const server = Bun.serve({
      ...{ port: 0, hostname: 'localhost' },
      async fetch(request) {
        const { pathname } = new URL(request.url);
        // The identity provider redirects to a path of the page.
        const file = Bun.file(`${folder}/${/\.\w+$/.test(pathname) ? pathname : 'index.html'}`);
        return (await file.exists()) ? new Response(file) : new Response(null, { status: 404 });
      },
    });
    stack.defer(() => server.stop(true));
    const origin = `http://localhost:${server.port}`;
    const gateway = stack.use(await startSandboxGateway(origin));
    const { text } = await readDocument('src/client/README.md');
    const run = async (command: string) => {
      const { status, output, errors } = await runToEnd(['sh', '-c', command], { cwd: folder });
      if (status !== 0) throw new Error(`${command}: ${output}${errors}`);
    };
    await mkdir(folder + PACKAGE, { recursive: true });
    const [, pack = ''] = /^npx --yes bun@[\d.]+ (run .* client:pack .*)$/m.exec(text) ?? [];
    await run(`${process.execPath} ${pack.replace('../music-gateway', ROOT)}`);
    await run(`tar -xzf music-gateway-client-*.tgz -C .${PACKAGE} --strip-components=1`);
    const { dependencies } = await Bun.file(`${folder}${PACKAGE}/package.json`).json();
    for (const name of Object.keys(dependencies))
      await symlink(`${ROOT}node_modules/${name}`, `${folder}/node_modules/${name}`);
    // On the same site as the page, for its cookies.
    const url = gateway.url.replace('127.0.0.1', 'localhost');
    const samples = samplesIn(text, {
      ...{ 'https://api.studio.example': url, 'http://localhost:4175': url },
      'http://127.0.0.1:4176': gateway.sandbox.identityProviderUrl,
      'http://localhost:5173/': gateway.redirectUri,
      'music-studio': SANDBOX_CLIENT.clientId,
    });
    for (const [name, content] of [...samples, ...Object.entries(FILES)])
      await Bun.write(`${folder}/${name}`, content);
    await run(`${ROOT}node_modules/.bin/tsc`);
    const [, copy = ''] = /^(cp .*live-audio-worker.js) public\/$/m.exec(text) ?? [];
    await run(`${copy} .`);

    await using visitor = await visit();
    const page = await visitor.open(origin);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('Ada');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Signed in as Ada').waitFor();
    await page.waitForFunction('navigator.serviceWorker.controller && window.client');
    const session = await page.evaluate(`call('/api/auth/session').then((response) => response.json())`);
    expect(session).toMatchObject({ data: { name: 'Ada' } });
    visitor.expectProblem(/status of 404/);
    expect(await page.evaluate(`call('/api/nothing').catch(String)`)).toMatch(/404: .+ \(request .+\)/);

    await page.evaluate(`window.audio = new Audio();
      playLive(client, ${ORDER}, audio)`);
    await page.waitForFunction('audio.currentTime > 0 && audio.duration === 3');
    expect(await page.evaluate('new URL(audio.src).pathname')).toStartWith('/live/');

    await page.route('**/api/music/generate', () => {});
    const sent = page.waitForRequest('**/api/music/generate');
    await page.evaluate(`void client.generate(${ORDER}, {
      unfinished: new UnfinishedGenerations('ada', sessionStorage),
    })`);
    await sent;
    await page.unrouteAll();
    await page.reload();
    await page.waitForFunction('window.takeUp');
    expect(await page.evaluate(`takeUp(client, 'ada')`)).toEqual([expect.any(String)]);
    expect(await page.evaluate(`takeUp(client, 'ada')`)).toEqual([]);
    expect(gateway.sandbox.upstream.counts().generations).toBe(2);
  }, 120_000);
});
