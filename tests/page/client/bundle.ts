/** Bundles code that uses the client, as a web app's build does. */

const ROOT = new URL('../../..', import.meta.url).pathname;
const ENTRY = `${ROOT}entry.ts`;

export const CLIENT = './src/client/index.ts';

/**
 * Bundles TypeScript as if it stood in the project's root; it is not written to disk.
 *
 * @returns the code as a classic script, and the files that have a part in it
 */
export async function bundle(entry: string, options: Pick<Bun.BuildConfig, 'minify' | 'external'> = {}) {
  const { outputs, metafile } = await Bun.build({
    ...options,
    entrypoints: [ENTRY],
    files: { [ENTRY]: entry },
    target: 'browser',
    format: 'iife',
    metafile: true,
  });
  const [output, ...more] = outputs;
  if (!output || more.length) throw new Error(`${outputs.length} files`);
  const parts = Object.values(metafile?.outputs ?? {}).flatMap(({ inputs }) => Object.entries(inputs));
  const files = parts.filter(([, { bytesInOutput }]) => bytesInOutput > 0).map(([file]) => file);
  return { code: await output.text(), files };
}

/** Bundles it as modules, some of which are loaded later. The paths begin with a slash; the first is `/entry.js`. */
export async function bundleModules(entry: string): Promise<ReadonlyMap<string, Blob>> {
  const { outputs } = await Bun.build({
    entrypoints: [ENTRY],
    files: { [ENTRY]: entry },
    target: 'browser',
    splitting: true,
  });
  return new Map(outputs.map((output) => [output.path.replace('./', '/'), output]));
}
