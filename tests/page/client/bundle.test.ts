import { describe, expect, it } from 'bun:test';
import { readDocument } from '../../support/documents.ts';
import { bundle, CLIENT } from './bundle.ts';

const WHOLE = `import { createGatewayClient } from '${CLIENT}'; console.log(createGatewayClient);`;
/** What is loaded when somebody signs in. */
const LATER = { external: ['*/code-flow.ts'] };
/** In kilobytes: the core, the same compressed, and what is loaded later. */
const DOCUMENTED = /(\d+) KB in a bundle, (\d+) KB compressed, and (\d+) KB\smore/;

describe('the client in the bundle of a web app', () => {
  it('brings itself and one library, and nothing of the server', async () => {
    const { files, code } = await bundle(WHOLE);
    const isOwn = (file: string) => file.startsWith('src/client/');
    expect(files.filter((file) => !isOwn(file))).toEqual([
      'node_modules/oauth4webapi/build/index.js',
      'entry.ts',
    ]);
    expect((await bundle(WHOLE, LATER)).files.filter((file) => !isOwn(file))).toEqual(['entry.ts']);
    expect(code).not.toMatch(/elysia|typebox|\bBun\b|node:|process\.env/i);
  });

  it('has the size that its page names, of which the core is at most 12 KB', async () => {
    const { code: core } = await bundle(WHOLE, { ...LATER, minify: true });
    const { code: whole } = await bundle(WHOLE, { minify: true });
    const bytes = [core.length, Bun.gzipSync(core).length, whole.length - core.length];
    const { text } = await readDocument('src/client/README.md');
    const [, ...documented] = DOCUMENTED.exec(text) ?? [];
    expect(bytes.map((each) => Math.ceil(each / 1_024))).toEqual(documented.map(Number));
    expect(core.length).toBeLessThanOrEqual(12 * 1_024);
  });

  it('does nothing when it is imported, so that what is not used falls away', async () => {
    expect((await bundle(`import '${CLIENT}';`, LATER)).files).toEqual([]);
    const error = `import { GatewayRequestError } from '${CLIENT}'; console.log(GatewayRequestError);`;
    expect((await bundle(error, LATER)).files.toSorted()).toEqual([
      'entry.ts',
      'src/client/gateway-request.ts',
    ]);
  });
});
