import { expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import type { Page } from 'playwright-core';
import { wavSize } from '../../src/demo/sandbox/audio/wav.ts';
import { ROOT, readDocument } from '../support/documents.ts';
import { SANDBOX_CLIENT } from '../support/sandbox-account.ts';
import { bundle } from './bundle.ts';
import { describeInChromium, type Visitor } from './chromium.ts';
import { samplesIn } from './samples.ts';
import { startSandboxGateway } from './sandbox-gateway.ts';

const WITH_CLIENT = ['page.ts', 'unfinished.ts'];
const BY_HAND = ['gateway.ts', 'sign-in.ts', 'music.ts'];
const ORDER = { model: 'sandbox-music-1', prompt: 'A quiet piano at night', music_length_ms: 3000 };

/** What the samples export, as far as these tests call it. */
declare const samples: {
  signIn(): Promise<void>;
  begin(): Promise<unknown>;
  order(order: object, key: string): Promise<{ creationId: string; body: ReadableStream<Uint8Array> }>;
  beginSignIn(): Promise<void>;
  completeSignIn(): Promise<void>;
  session(): Promise<unknown>;
  generate(
    order: object,
    key: string,
    onPiece: (bytes: number) => void,
  ): Promise<{ creationId: string; audio: Blob }>;
  play(audio: HTMLAudioElement, creationId: string): Promise<void>;
  publish(creationId: string): Promise<void>;
  signOut(): Promise<void>;
};

type SamplesPage = Awaited<ReturnType<typeof openSamples>>;

/** Writes the samples to files in a folder of their own, with these texts instead of the addresses in them. */
async function writeSamples(replacements: Readonly<Record<string, string>> = {}) {
  const folder = await mkdtemp(`${tmpdir()}/documented-samples-`);
  const client = { "'music-gateway-client'": `'${ROOT}src/client/index.ts'` };
  const { text } = await readDocument('src/client/README.md');
  const samples = samplesIn(text, { ...replacements, ...client });
  // Those for React need its package, and are checked in an app that has it.
  const names = [...samples.keys()].filter((name) => name.endsWith('.ts'));
  for (const name of names) await Bun.write(`${folder}/${name}`, samples.get(name) ?? '');
  const tsconfig = { extends: `${ROOT}src/demo/studio/tsconfig.json`, include: ['*.ts'] };
  await Bun.write(`${folder}/tsconfig.json`, JSON.stringify(tsconfig));
  return { folder, names, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
}

/** A web app with nothing in it but the samples, whose exports are members of `samples`, a gateway and the sandbox. */
async function openSamples(visitor: Visitor, names: readonly string[]) {
  await using stack = new AsyncDisposableStack();
  let html = '';
  const server = Bun.serve({
    port: 0,
    hostname: 'localhost',
    fetch: () => new Response(html, { headers: { 'content-type': 'text/html; charset=utf-8' } }),
  });
  stack.defer(() => server.stop(true));
  const origin = `http://localhost:${server.port}`;
  const gateway = stack.use(await startSandboxGateway(origin));
  const { folder } = stack.use(
    await writeSamples({
      // On the same site as the page, for its cookies.
      'https://api.studio.example': gateway.url.replace('127.0.0.1', 'localhost'),
      'https://studio.example': origin,
      'https://id.example': gateway.sandbox.identityProviderUrl,
      "'music-studio'": `'${SANDBOX_CLIENT.clientId}'`,
    }),
  );
  const imports = names.map((name, index) => `import * as s${index} from '${folder}/${name}';`);
  const members = names.map((_, index) => `...s${index}`);
  const { code } = await bundle(
    `${imports.join('')} Object.assign(window, { samples: { ${members.join(', ')} } });`,
  );
  html = `<!doctype html><link rel="icon" href="data:,"><script>${code.replaceAll('</', '<\\/')}</script>`;
  const page = await visitor.open(`${origin}/`);
  const running = stack.move();
  return { page, origin, gateway, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

/** Goes through the identity provider's form, and comes back to the redirect URI. */
async function comeBackAs(page: Page, name: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Name' }).fill(name);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL('**/callback?*');
}

/** Plays the track with the sample, and gives its length in seconds once it moves. */
function playedSeconds(page: Page, creationId: string): Promise<number> {
  return page.evaluate(async (id) => {
    const audio = new Audio();
    await samples.play(audio, id);
    while (audio.currentTime === 0) await new Promise(requestAnimationFrame);
    return audio.duration;
  }, creationId);
}

/** Refuses the first order as an overloaded gateway does; gives the Idempotency-Keys of all. */
async function overloadOnce({ origin }: SamplesPage, { context }: Visitor): Promise<readonly unknown[]> {
  const keys: (string | undefined)[] = [];
  await context.route('**/api/music/generate', (route) => {
    keys.push(route.request().headers()['idempotency-key']);
    if (keys.length > 1) return route.continue();
    const headers = {
      'retry-after': '0',
      'proxy-status': 'music-gateway; error=connection_limit_reached',
      'access-control-allow-origin': origin,
      'access-control-allow-credentials': 'true',
      'access-control-expose-headers': 'retry-after, proxy-status',
    };
    return route.fulfill({ status: 503, headers });
  });
  return keys;
}

async function isPublic({ origin, gateway }: SamplesPage, creationId: string): Promise<boolean> {
  const url = `${gateway.url}/api/upstream/v1/music/public/${creationId}`;
  return (await fetch(url, { headers: { origin } })).ok;
}

describeInChromium('the code samples for web-app developers', (visit) => {
  it('are accepted by the compiler', async () => {
    await using written = await writeSamples();
    expect(written.names).toEqual([...WITH_CLIENT, ...BY_HAND]);
    const command = [process.execPath, 'check', '--no-script', '--no-pretty', '-p', written.folder];
    expect(await Bun.spawn(command, { stdio: ['ignore', 'inherit', 'inherit'] }).exited).toBe(0);
  });

  it('sign in, generate, play, publish and sign out with the client', async () => {
    await using visitor = await visit();
    visitor.expectProblem(/status of 503/);
    await using opened = await openSamples(visitor, WITH_CLIENT);
    const { page } = opened;
    expect(await page.evaluate(() => samples.begin())).toBeUndefined();
    await page.evaluate(() => samples.signIn());
    await comeBackAs(page, 'Ada');
    const posted: string[] = [];
    page.on('request', (request) => {
      if (request.method() === 'POST') posted.push(new URL(request.url()).pathname);
    });
    // As React's StrictMode does.
    const twice = page.evaluate(() => Promise.all([samples.begin(), samples.begin()]));
    expect(await twice).toMatchObject([{ name: 'Ada' }, { name: 'Ada' }]);
    expect(posted).toEqual(['/api/auth/idp']);
    expect(new URL(page.url()).search).toBe('');

    const keys = await overloadOnce(opened, visitor);
    const { creationId, size } = await page.evaluate(async (order) => {
      const { creationId, body } = await samples.order(order, 'the-same-key');
      return { creationId, size: (await new Response(body).arrayBuffer()).byteLength };
    }, ORDER);
    expect(size).toBe(wavSize(3000));
    expect(keys).toEqual(['the-same-key', 'the-same-key']);
    expect(opened.gateway.sandbox.upstream.counts().generations).toBe(1);
    expect(await playedSeconds(page, creationId)).toBe(3);
    expect(await isPublic(opened, creationId)).toBe(false);
    await page.evaluate((id) => samples.publish(id), creationId);
    expect(await isPublic(opened, creationId)).toBe(true);
    await page.evaluate(() => samples.signOut());
    expect(await page.evaluate(() => samples.begin())).toBeUndefined();
  });

  it('sign in, generate, play, publish and sign out by hand', async () => {
    await using visitor = await visit();
    await using opened = await openSamples(visitor, BY_HAND);
    const { page, origin, gateway } = opened;
    await page.goto(`${origin}/callback?code=stolen&state=made-up`);
    const outcome = page.evaluate(() => samples.completeSignIn());
    await expect(outcome).rejects.toThrow('not the sign-in of this tab');
    expect(gateway.sandbox.upstream.counts().signIns).toBe(0);
    await page.goto(`${origin}/`);
    expect(await page.evaluate(() => samples.session())).toEqual({ authenticated: false });
    await page.evaluate(() => samples.beginSignIn());
    await comeBackAs(page, 'Grace');
    await page.evaluate(() => samples.completeSignIn());
    expect(new URL(page.url()).search).toBe('');
    expect(await page.evaluate(() => samples.session())).toMatchObject({ data: { name: 'Grace' } });

    const { creationId, size, counted } = await page.evaluate(async (order) => {
      let counted = 0;
      const count = (bytes: number) => {
        counted += bytes;
      };
      const { creationId, audio } = await samples.generate(order, crypto.randomUUID(), count);
      return { creationId, size: audio.size, counted };
    }, ORDER);
    expect([size, counted]).toEqual([wavSize(3000), wavSize(3000)]);
    expect(await playedSeconds(page, creationId)).toBe(3);
    await page.evaluate((id) => samples.publish(id), creationId);
    expect(await isPublic(opened, creationId)).toBe(true);
    await page.evaluate(() => samples.signOut());
    expect(await page.evaluate(() => samples.session())).toEqual({ authenticated: false });
  });
});
