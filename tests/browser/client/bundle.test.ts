import { describe, expect, it } from 'bun:test';
import { wavSize } from '../../../src/demo/sandbox/audio/wav.ts';
import { CookieJar } from '../../../src/demo/tour/cookie-jar.ts';
import { navigate, submitForm } from '../../../src/demo/tour/sign-in-through-form.ts';
import { SANDBOX_CLIENT } from '../../support/sandbox-account.ts';
import { startSandboxGateway } from '../../support/sandbox-gateway.ts';
import { ORIGIN } from '../../support/world.ts';
import { bundle, CLIENT } from './bundle.ts';
import type { Report, Task } from './worker.ts';

const WHOLE = `import { createGatewayClient } from '${CLIENT}'; console.log(createGatewayClient);`;

describe('the client in the bundle of a web app', () => {
  it('is itself and one library, and nothing of the server', async () => {
    const { files, code } = await bundle(WHOLE);
    expect(files.toSorted()).toEqual([
      'entry.ts',
      'node_modules/oauth4webapi/build/index.js',
      'src/client/gateway-client.ts',
      'src/client/gateway-request.ts',
      'src/client/generation.ts',
      'src/client/sign-in.ts',
    ]);
    expect(code).not.toMatch(/elysia|typebox|\bBun\b|node:|process\.env/i);
  });

  it('takes 11 KB, 4.5 KB compressed', async () => {
    const { code } = await bundle(WHOLE, { minify: true });
    expect(code.length).toBeLessThan(11_500);
    expect(Bun.gzipSync(code).length).toBeLessThan(4_750);
  });

  it('does nothing when it is imported, so that what is not used falls away', async () => {
    expect((await bundle(`import '${CLIENT}';`)).files).toEqual([]);
    const error = `import { GatewayRequestError } from './src/client/gateway-request.ts'; console.log(GatewayRequestError);`;
    expect((await bundle(error)).files.toSorted()).toEqual(['entry.ts', 'src/client/gateway-request.ts']);
  });
});

describe('the client in a web worker', () => {
  it('signs in with the storage that it is given, and generates', async () => {
    await using gateway = await startSandboxGateway();
    const issuer = gateway.sandbox.identityProviderUrl;
    const { code } = await bundle(`import './tests/browser/client/worker.ts';`, { format: 'esm' });
    const script = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
    const worker = new Worker(script);
    const next = <Data>() =>
      new Promise<Data>((resolve, reject) => {
        worker.onmessage = ({ data }: MessageEvent<Data>) => resolve(data);
        worker.onerror = ({ message }) => reject(new Error(message));
      });
    try {
      const begun = next<string>();
      const task: Task = {
        gatewayUrl: gateway.url,
        origin: ORIGIN,
        provider: {
          issuer,
          authorizationEndpoint: `${issuer}/oauth/authorize`,
          clientId: SANDBOX_CLIENT.clientId,
          redirectUri: gateway.redirectUri,
        },
      };
      worker.postMessage(task);
      const jar = new CookieJar();
      const end = await submitForm(jar, await navigate(jar, new URL(await begun)), { name: 'Worker' });
      const done = next<Report>();
      worker.postMessage(end.at === 'client' ? end.redirect.href : '');
      const { without, remembered, session, bytes, progress } = await done;
      expect(without).toEqual({ storage: 'TypeError', address: 'TypeError' });
      expect(remembered).toBe(0);
      expect(session).toMatchObject({ authenticated: true, profile: { name: 'Worker' } });
      expect(bytes).toBe(wavSize(3000));
      expect(progress.at(-1)).toBe(bytes);
    } finally {
      worker.terminate();
      URL.revokeObjectURL(script);
    }
  });
});
