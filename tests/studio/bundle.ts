/** Bundles code that uses the client, as a web app's build does. */

const ROOT = new URL('../..', import.meta.url).pathname;
const ENTRY = `${ROOT}entry.ts`;

export const CLIENT = './src/client/index.ts';

/** Bundles TypeScript as if it stood in the project's root, as a classic script; nothing is written to disk. */
export async function bundle(entry: string): Promise<{ readonly code: string }> {
  const [output, ...more] = await build(entry, { format: 'iife' });
  if (!output || more.length) throw new Error(`not one file, but ${more.length + 1}`);
  return { code: await output.text() };
}

/** Bundles it as modules, some of which are loaded later. The paths begin with a slash; the first is `/entry.js`. */
export async function bundleModules(entry: string): Promise<ReadonlyMap<string, Blob>> {
  const outputs = await build(entry, { splitting: true });
  return new Map(outputs.map((output) => [output.path.replace('./', '/'), output]));
}

async function build(entry: string, options: Pick<Bun.BuildConfig, 'format' | 'splitting'>) {
  const files = { [ENTRY]: entry };
  return (await Bun.build({ ...options, entrypoints: [ENTRY], files, target: 'browser' })).outputs;
}
