import { expect, it } from 'bun:test';
import type { BrowserContext } from 'playwright-core';
import { describeWebApp, openWebApp, passForm, TIMEOUT_MS, waitForSound } from './web-app.ts';

const PACKAGES = {
  react: '19.3.1',
  'react-dom': '19.3.1',
  '@types/react': '19.3.0',
  '@types/react-dom': '19.3.0',
  '@vitejs/plugin-react': '6.3.0',
  vite: '8.3.8',
};
const COMPILER_OPTIONS = { module: 'esnext', moduleResolution: 'bundler', jsx: 'react-jsx', noEmit: true };
const VITE_CONFIG = `
  import react from '@vitejs/plugin-react';
  import { defineConfig } from 'vite';
  export default defineConfig({ plugins: [react()] });
`;
const PAGE = `<!doctype html><html lang="en"><link rel="icon" href="data:,">
  <div id="root"></div><script type="module" src="/main.tsx"></script></html>`;
const MAIN = `
  import { StrictMode } from 'react';
  import { createRoot } from 'react-dom/client';
  import { Studio } from './studio';
  const root = document.getElementById('root');
  if (root) createRoot(root).render(<StrictMode><Studio /></StrictMode>);
`;

/** The paths of the requests in a browser, such as `GET /callback`, without preflights. */
function recordCalls(context: BrowserContext): string[] {
  const calls: string[] = [];
  context.on('request', (request) => {
    if (request.method() !== 'OPTIONS') calls.push(`${request.method()} ${new URL(request.url()).pathname}`);
  });
  return calls;
}

describeWebApp('in a React app', (visit) => {
  it(
    'passes strict checks and the build of Vite, and then signs in, generates and plays',
    async () => {
      await using app = await openWebApp('dist');
      await app.install(PACKAGES);
      await app.compile(COMPILER_OPTIONS, {
        'vite.config.js': VITE_CONFIG,
        'index.html': PAGE,
        'main.tsx': MAIN,
        'studio.tsx': app.samples.get('studio.tsx') ?? '',
        'public/robots.txt': '',
      });
      await app.run(app.commandOf('live-audio-worker'));
      // StrictMode does things twice in development only.
      for (const [mode, times] of [
        ['production', 1],
        ['development', 2],
      ] as const) {
        await app.run('node_modules/.bin/vite build', { NODE_ENV: mode });
        await using visitor = await visit();
        const page = await visitor.open(app.origin);
        const status = page.getByRole('status');
        await status.filter({ hasText: 'signed out' }).waitFor();
        await page.getByRole('button', { name: 'Sign in' }).click();
        const calls = recordCalls(visitor.context);
        const count = (call: string) => calls.filter((each) => each === call).length;
        await passForm(page, 'Ada');
        await status.filter({ hasText: 'signed in' }).waitFor();
        expect([count('POST /api/auth/idp'), count('GET /api/auth/session')]).toEqual([1, times]);

        await page.waitForFunction('navigator.serviceWorker.controller');
        await page.getByRole('button', { name: 'Generate' }).click();
        await waitForSound(page);
        expect(await page.locator('audio').getAttribute('src')).toStartWith('/live/');
        await status.filter({ hasText: 'complete' }).waitFor();
        expect(count('POST /api/music/generate')).toBe(1);
      }
    },
    TIMEOUT_MS,
  );
});
