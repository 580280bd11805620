import { expect, it } from 'bun:test';
import { wavSize } from '../../../src/demo/sandbox/audio/wav.ts';
import { describeWebApp, openWebApp, passForm, TIMEOUT_MS, waitForSound } from './web-app.ts';

const ORDER = { model: 'sandbox-music-1', prompt: 'A quiet piano at night', music_length_ms: 3_000 };
/** The browser itself finds the modules of both packages. */
const IMPORTS = {
  'music-gateway-client': '/node_modules/music-gateway-client/dist/index.js',
  oauth4webapi: '/node_modules/oauth4webapi/build/index.js',
};
const PAGE = `<!doctype html><html lang="en"><link rel="icon" href="data:,">
  <script type="importmap">${JSON.stringify({ imports: IMPORTS })}</script>
  <script type="module" src="/main.js"></script></html>`;
const MAIN = `
  import * as page from './page.js';
  Object.assign(window, { page });
`;

describeWebApp('in a plain page', (visit) => {
  it(
    'passes strict checks, and then signs in, generates and plays without a bundler',
    async () => {
      await using app = await openWebApp('.');
      await app.install();
      await app.compile(
        { module: 'nodenext' },
        { 'index.html': PAGE, 'main.ts': MAIN, 'page.ts': app.samples.get('page.ts') ?? '' },
      );
      await using visitor = await visit();
      const page = await visitor.open(app.origin);
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
    },
    TIMEOUT_MS,
  );
});
