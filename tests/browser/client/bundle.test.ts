import { describe, expect, it } from 'bun:test';
import { bundle, CLIENT } from './bundle.ts';

const WHOLE = `import { createGatewayClient } from '${CLIENT}'; console.log(createGatewayClient);`;

describe('the client in the bundle of a web app', () => {
  it('brings itself and one library, and nothing of the server', async () => {
    const { files, code } = await bundle(WHOLE);
    expect(files.toSorted()).toEqual([
      'entry.ts',
      'node_modules/oauth4webapi/build/index.js',
      'src/client/creation-path.ts',
      'src/client/gateway-client.ts',
      'src/client/gateway-request.ts',
      'src/client/generation.ts',
      'src/client/repetition.ts',
      'src/client/sign-in.ts',
    ]);
    expect(code).not.toMatch(/elysia|typebox|\bBun\b|node:|process\.env/i);
  });

  it('takes at most 12 KB, 5 KB compressed', async () => {
    const { code } = await bundle(WHOLE, { minify: true });
    expect(code.length).toBeLessThan(12 * 1_024);
    expect(Bun.gzipSync(code).length).toBeLessThan(5 * 1_024);
  });

  it('takes 4 KB more with recovery, which is no part of it otherwise', async () => {
    const recovery = `import { generateWithRecovery } from './src/client/recovering-generation.ts';`;
    const [without, whole] = await Promise.all([
      bundle(WHOLE, { minify: true }),
      bundle(`${WHOLE} ${recovery} console.log(generateWithRecovery);`, { minify: true }),
    ]);
    expect(whole.code.length - without.code.length).toBeLessThan(4.5 * 1_024);
  });

  it('does nothing when it is imported, so that what is not used falls away', async () => {
    expect((await bundle(`import '${CLIENT}';`)).files).toEqual([]);
    const error = `import { GatewayRequestError } from './src/client/gateway-request.ts'; console.log(GatewayRequestError);`;
    expect((await bundle(error)).files.toSorted()).toEqual(['entry.ts', 'src/client/gateway-request.ts']);
  });
});
