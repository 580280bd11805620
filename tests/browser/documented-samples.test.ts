import { expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { wavSize } from '../../src/demo/sandbox/audio/wav.ts';
import { ROOT, readDocument } from '../support/documents.ts';
import { SANDBOX_CLIENT } from '../support/sandbox-account.ts';
import { bundle } from './bundle.ts';
import { describeInChromium } from './chromium.ts';
import { samplesIn } from './samples.ts';
import { startSandboxGateway } from './sandbox-gateway.ts';

const ORDER = { model: 'sandbox-music-1', prompt: 'A quiet piano at night', music_length_ms: 3000 };
/** The files of the samples, and what a web app makes of their exports, which are members of `samples`. */
const APPS = {
  'with the client': {
    names: ['page.ts', 'unfinished.ts'],
    more: `
      profile: samples.begin,
      async generate(order, key) {
        const { creationId, body } = await samples.order(order, key);
        return [creationId, (await new Response(body).arrayBuffer()).byteLength];
      },`,
  },
  'by hand': {
    names: ['gateway.ts', 'sign-in.ts', 'music.ts'],
    more: `
      signIn: samples.beginSignIn,
      async profile() {
        if (location.search) await samples.completeSignIn();
        return (await samples.session()).data;
      },
      async generate(order, key) {
        let counted = 0;
        const { creationId } = await samples.generate(order, key, (bytes) => { counted += bytes; });
        return [creationId, counted];
      },`,
  },
} as const;

declare const app: {
  signIn(): Promise<void>;
  profile(): Promise<{ name: string } | undefined>;
  generate(order: object, key: string): Promise<[creationId: string, bytes: number]>;
  play(audio: HTMLAudioElement, creationId: string): Promise<void>;
  publish(creationId: string): Promise<void>;
  signOut(): Promise<void>;
};

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

describeInChromium('the code samples for web-app developers', (visit) => {
  it('are accepted by the compiler', async () => {
    await using written = await writeSamples();
    expect(written.names).toEqual(Object.values(APPS).flatMap(({ names }) => names));
    const command = [process.execPath, 'check', '--no-script', '--no-pretty', '-p', written.folder];
    expect(await Bun.spawn(command, { stdio: ['ignore', 'inherit', 'inherit'] }).exited).toBe(0);
  });

  it.each(Object.entries(APPS))(
    'sign in, generate, play, publish and sign out %s',
    async (_, { names, more }) => {
      let html = '';
      await using server = Bun.serve({
        port: 0,
        hostname: 'localhost',
        fetch: () => new Response(html, { headers: { 'content-type': 'text/html; charset=utf-8' } }),
      });
      const origin = `http://localhost:${server.port}`;
      await using gateway = await startSandboxGateway(origin);
      await using written = await writeSamples({
        // On the same site as the page, for its cookies.
        'https://api.studio.example': gateway.url.replace('127.0.0.1', 'localhost'),
        'https://studio.example': origin,
        'https://id.example': gateway.sandbox.identityProviderUrl,
        "'music-studio'": `'${SANDBOX_CLIENT.clientId}'`,
      });
      const imports = names.map((name, index) => `import * as s${index} from '${written.folder}/${name}';`);
      const members = names.map((_, index) => `...s${index}`);
      const { code } = await bundle(`${imports.join('')} const samples = { ${members.join()} };
      Object.assign(window, { app: { ...samples, ${more} } });`);
      html = `<!doctype html><link rel="icon" href="data:,"><script>${code.replaceAll('</', '<\\/')}</script>`;
      const isPublic = async (id: string) =>
        (await fetch(`${gateway.url}/api/upstream/v1/music/public/${id}`, { headers: { origin } })).ok;

      await using visitor = await visit();
      const page = await visitor.open(`${origin}/callback?code=stolen&state=made-up`);
      await expect(page.evaluate(() => app.profile())).rejects.toThrow('sign-in');
      expect(gateway.sandbox.upstream.counts().signIns).toBe(0);
      await page.goto(`${origin}/`);
      expect(await page.evaluate(() => app.profile())).toBeUndefined();
      await page.evaluate(() => app.signIn());
      await page.getByRole('textbox', { name: 'Name' }).fill('Ada');
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.waitForURL('**/callback?*');
      expect(await page.evaluate(() => app.profile())).toMatchObject({ name: 'Ada' });
      expect(new URL(page.url()).search).toBe('');

      const [id, bytes] = await page.evaluate((order) => app.generate(order, crypto.randomUUID()), ORDER);
      expect(bytes).toBe(wavSize(ORDER.music_length_ms));
      const seconds = page.evaluate(async (id) => {
        const audio = new Audio();
        await app.play(audio, id);
        while (audio.currentTime === 0) await new Promise(requestAnimationFrame);
        return audio.duration;
      }, id);
      expect(await seconds).toBe(3);
      expect(await isPublic(id)).toBe(false);
      await page.evaluate((id) => app.publish(id), id);
      expect(await isPublic(id)).toBe(true);
      await page.evaluate(() => app.signOut());
      expect(await page.evaluate(() => app.profile())).toBeUndefined();
    },
  );
});
