import { expect, it } from 'bun:test';
import { mkdir, symlink } from 'node:fs/promises';
import { $ } from 'bun';
import { describeInChromium, visit } from '../../studio/chromium.ts';
import { A_MINOR, recordTune } from '../../studio/recording.ts';
import { startDemo } from '../../support/demo-process.ts';
import { ROOT, readDocument, samplesIn } from '../../support/documents.ts';
import { freePorts } from '../../support/free-ports.ts';
import { createFolder } from '../../support/temporary-folder.ts';

const README = await readDocument('src/client/README.md');
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
      import { takeUp } from '/unfinished.js'; import { upload } from '/upload.js'; import { call } from '/gateway.js'; import '/main.js';
      Object.assign(window, { UnfinishedGenerations, client, playLive, takeUp, upload, call });
    </script></html>`,
  'tsconfig.json': JSON.stringify({
    compilerOptions: {
      ...{ target: 'es2022', lib: ['es2022', 'dom', 'dom.iterable'], types: [] },
      ...{ strict: true, skipLibCheck: false, verbatimModuleSyntax: true },
      ...{ module: 'esnext', moduleResolution: 'bundler' },
    },
  }),
};

/** The page's, with what the README asks for. Each violation fails the test. */
const policyFor = (gateway: string) =>
  [
    "default-src 'none'; img-src data:; script-src 'unsafe-eval'; script-src-elem 'self' 'unsafe-inline'",
    `connect-src data: ${gateway}; media-src 'self' ${gateway}; worker-src 'self'`,
  ].join('; ');

describeInChromium('the package of the client', () => {
  it('signs in, plays from the first bytes and takes up a lost order in a page beside the demo, without a bundler', async () => {
    await using stack = new AsyncDisposableStack();
    const { path: folder } = stack.use(await createFolder());
    const port = await freePorts(6);
    const server = Bun.serve({
      ...{ port: 0, hostname: 'localhost' },
      fetch({ url }) {
        const { pathname } = new URL(url);
        return new Response(Bun.file(folder + (pathname === '/' ? '/index.html' : pathname)), {
          headers: { 'content-security-policy': policyFor(`http://localhost:${port}`) },
        });
      },
    });
    stack.defer(() => server.stop(true));
    const origin = `http://localhost:${server.port}`;
    const [, origins = ''] = /^DEMO_ORIGINS=(\S+) npx --yes bun@[\d.]+ run demo$/m.exec(README.text) ?? [];
    const DEMO_ORIGINS = origins.replace('http://localhost:5173', origin);
    stack.use(await startDemo({ PORT: `${port}`, DEMO_ORIGINS }));
    const run = (command: string) => $`sh -c ${command}`.cwd(folder).quiet();
    await mkdir(folder + PACKAGE, { recursive: true });
    const [, pack = ''] = /^npx --yes bun@[\d.]+ (run .* client:pack .*)$/m.exec(README.text) ?? [];
    await run(`${process.execPath} ${pack.replace('../music-gateway', ROOT)}`);
    await run(`tar -xzf music-gateway-client-*.tgz -C .${PACKAGE} --strip-components=1`);
    const { dependencies } = await Bun.file(`${folder}${PACKAGE}/package.json`).json();
    for (const name of Object.keys(dependencies))
      await symlink(`${ROOT}node_modules/${name}`, `${folder}/node_modules/${name}`);
    const samples = samplesIn(README, {
      'https://api.studio.example': `http://localhost:${port}`,
      ...{ 4175: `${port}`, 4176: `${port + 1}`, 5173: `${server.port}` },
    });
    for (const [name, content] of [...samples, ...Object.entries(FILES)])
      await Bun.write(`${folder}/${name}`, content);
    await run(`${ROOT}node_modules/.bin/tsc`);
    const [, copy = ''] = /^(cp .*live-audio-worker.js) public\/$/m.exec(README.text) ?? [];
    await run(`${copy} .`);

    await using visitor = await visit();
    visitor.expectProblem(/status of 401/);
    visitor.expectProblem(/ERR_FAILED/);
    // It is loaded when nobody is signed in.
    const partThatSignsIn = '**/code-flow.js';
    await visitor.context.route(partThatSignsIn, (route) => route.abort());
    const page = await visitor.open(origin);
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
    expect(page.url()).toBe(`${origin}/`);
    const finished = page.waitForEvent('requestfinished', (request) => request.url().endsWith('/logout'));
    await press('Sign out');
    await page.getByText('Signed out').waitFor();
    await finished;
    await press('Sign in');
    await page.getByRole('textbox', { name: 'Name' }).fill('Bob');
    await press('Sign in');
    await page.getByText('Signed in as Bob').waitFor();
    await press('Generate');
    await page.getByText('Playing').waitFor();
    const shown = 'document.querySelector("audio")';
    await page.waitForFunction(`${shown}.currentTime > 0 && ${shown}.duration === 10`);

    await page.waitForFunction('navigator.serviceWorker.controller && window.client');
    const session = await page.evaluate(`call('/api/auth/session').then((response) => response.json())`);
    expect(session).toMatchObject({ data: { name: 'Bob' } });
    const recording = recordTune({ notes: A_MINOR, bpm: 90 });
    const file = `fetch('data:audio/wav;base64,${recording.toString('base64')}').then((data) => data.blob())`;
    const uploaded = await page.evaluate(`(async () => {
      const bar = document.createElement('progress');
      const { signal } = new AbortController();
      const response = await upload(client, new File([await ${file}], 'tune.wav'), bar, signal);
      return [bar.value, (await response.json()).data.name];
    })()`);
    expect(uploaded).toEqual([1, 'tune.wav']);

    visitor.expectProblem(/status of 404/);
    expect(await page.evaluate(`call('/api/nothing').catch(String)`)).toMatch(/404: .+ \(request .+\)/);

    await page.evaluate(`window.audio = new Audio();
      playLive(client, ${ORDER}, audio)`);
    await page.waitForFunction('audio.currentTime > 0 && audio.duration === 3');
    expect(await page.evaluate('new URL(audio.src).pathname')).toStartWith('/live/');
    // The finished track can be played again, and sought in.
    await page.waitForFunction(`audio.src.endsWith('/content') && audio.duration === 3`);
    expect(await page.evaluate('audio.currentTime = 2, audio.seekable.end(0)')).toBe(3);

    // Chromium pauses an element of the page when its stream fails, as when the browser stops the worker.
    await page.evaluate(`window.audio = document.body.appendChild(new Audio());
      audio.addEventListener('playing', () => {
        const id = audio.src.split('/live/')[1];
        navigator.serviceWorker.controller.postMessage({ id, kind: 'break' });
      }, { once: true });
      void playLive(client, { ...${ORDER}, music_length_ms: 20_000 }, audio)`);
    await page.waitForFunction(`audio.src.endsWith('/content') && !audio.paused && audio.currentTime > 3`);

    await page.route('**/api/music/generate', () => {});
    const sent = page.waitForRequest('**/api/music/generate');
    await page.evaluate(`void client.generate(${ORDER}, {
      unfinished: new UnfinishedGenerations('bob', sessionStorage),
    })`);
    await sent;
    await page.reload();
    // Not before, because the browser sends what has been held back then.
    await page.unrouteAll();
    await page.waitForFunction('window.takeUp');
    expect(await page.evaluate(`takeUp(client, 'bob', new Audio())`)).toEqual([expect.any(String)]);
    expect(await page.evaluate(`takeUp(client, 'bob', new Audio())`)).toEqual([]);
    // One credit a second, of 10 s, 3 s, 20 s, and the lost order's 3 s.
    expect(await page.evaluate(`client.upstreamData('/v1/billing/balance')`)).toMatchObject({
      balance: 4_964,
    });
  }, 120_000);
});
