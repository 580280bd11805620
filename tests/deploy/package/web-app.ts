/** An empty web app outside of the project, into which npm installs the client's package. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import type { Page } from 'playwright-core';
import { devDependencies } from '../../../package.json';
import { describeInChromium, type Visit } from '../../support/chromium.ts';
import { ROOT, readDocument } from '../../support/documents.ts';
import { describeWith, program } from '../../support/requirements.ts';
import { runToEnd } from '../../support/run-to-end.ts';
import { samplesIn } from '../../support/samples.ts';
import { SANDBOX_CLIENT } from '../../support/sandbox-account.ts';
import { startSandboxGateway } from '../../support/sandbox-gateway.ts';

/** An installation and a build, on a machine that has many other things to do. */
export const TIMEOUT_MS = 180_000;

/** What npm's cache has is not fetched again. */
const INSTALL = 'npm install --prefer-offline --no-audit --no-fund --ignore-scripts';

const COMPILER_OPTIONS = {
  target: 'es2022',
  lib: ['es2022', 'dom', 'dom.iterable'],
  types: [],
  strict: true,
  verbatimModuleSyntax: true,
  // The declarations of the package are checked too.
  skipLibCheck: false,
};

export function describeWebApp(name: string, tests: (visit: Visit) => void): void {
  describeWith([program('npm')], 'the package of the client', () => describeInChromium(name, tests));
}

/**
 * Opens an app on an origin of its own, in front of a gateway and the sandbox.
 *
 * @param served the folder within the app's that its server serves; the page is `index.html`
 */
export async function openWebApp(served: string) {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(`${tmpdir()}/web-app-`);
  stack.defer(() => rm(folder, { recursive: true }));
  const server = Bun.serve({
    port: 0,
    hostname: 'localhost',
    async fetch(request) {
      const { pathname } = new URL(request.url);
      // The identity provider redirects to a path of the page.
      const path = /\.\w+$/.test(pathname) ? pathname : '/index.html';
      const file = Bun.file(`${folder}/${served}${path}`);
      return (await file.exists()) ? new Response(file) : new Response(null, { status: 404 });
    },
  });
  stack.defer(() => server.stop(true));
  const origin = `http://localhost:${server.port}`;
  const gateway = stack.use(await startSandboxGateway(origin));
  const { text } = await readDocument('src/client/README.md');
  const commands = Array.from(text.matchAll(/^```sh\n([^`]+)\n```$/gm), ([, command = '']) => command);
  const run = async (command: string, environment: Readonly<Record<string, string>> = {}) => {
    const { status, output, errors } = await runToEnd(command.split(' '), { cwd: folder, environment });
    if (status !== 0) throw new Error(`${command}: ${output}${errors}`);
    return output.trim();
  };
  const running = stack.move();
  return {
    origin,
    /** The samples of the client's page, with the addresses of this app and its gateway. */
    samples: samplesIn(text, {
      // On the same site as the page, for its cookies.
      'https://api.studio.example': gateway.url.replace('127.0.0.1', 'localhost'),
      'https://studio.example': origin,
      'https://id.example': gateway.sandbox.identityProviderUrl,
      "'music-studio'": `'${SANDBOX_CLIENT.clientId}'`,
    }),
    /** The command of the client's page in which this text is. */
    commandOf(text: string): string {
      const [command] = commands.filter((line) => line.includes(text));
      if (command === undefined) throw new Error(`no command with ${text}`);
      return command;
    },
    /** Installs the package, TypeScript and these. */
    async install(packages: Readonly<Record<string, string>> = {}) {
      const client = await run(`bash ${ROOT}src/client/pack.sh .`);
      const dependencies = {
        'music-gateway-client': client,
        typescript: devDependencies.typescript,
        ...packages,
      };
      await Bun.write(`${folder}/package.json`, JSON.stringify({ type: 'module', dependencies }));
      await run(INSTALL);
    },
    /** Writes the sources, and compiles them with these further options. */
    async compile(options: object, sources: Readonly<Record<string, string>>) {
      for (const [name, text] of Object.entries(sources)) await Bun.write(`${folder}/${name}`, text);
      const config = { compilerOptions: { ...COMPILER_OPTIONS, ...options }, exclude: ['*.js'] };
      await Bun.write(`${folder}/tsconfig.json`, JSON.stringify(config));
      await run('node_modules/.bin/tsc');
    },
    /** Runs a command in the app's folder. */
    run,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** Goes through the identity provider's form, and comes back to the redirect URI. */
export async function passForm(page: Page, name: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Name' }).fill(name);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(/\/callback/);
}

/** Waits until the page plays a track of three seconds. */
export async function waitForSound(page: Page): Promise<void> {
  const audio = `document.querySelector('audio')`;
  await page.waitForFunction(`${audio}?.currentTime > 0 && ${audio}.duration === 3`);
}
