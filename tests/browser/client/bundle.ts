/** Bundles code that uses the client, as a web app's build does. */

const ROOT = new URL('../../..', import.meta.url).pathname;
const ENTRY = `${ROOT}entry.ts`;

export const CLIENT = './src/client/gateway-client.ts';

/** The code, and the files of which something is in it. */
export interface Bundle {
  readonly code: string;
  readonly files: readonly string[];
}

export interface BundleOptions {
  readonly minify?: boolean;
  /** A classic script unless given. */
  readonly format?: 'iife' | 'esm';
}

/** The entry is TypeScript in the project's root; it is not written to disk. */
export async function bundle(
  entry: string,
  { minify = false, format = 'iife' }: BundleOptions = {},
): Promise<Bundle> {
  const { outputs, metafile } = await Bun.build({
    entrypoints: [ENTRY],
    files: { [ENTRY]: entry },
    target: 'browser',
    format,
    minify,
    metafile: true,
  });
  const [output, ...more] = outputs;
  if (!output || more.length) throw new Error(`${outputs.length} files`);
  const parts = Object.values(metafile?.outputs ?? {}).flatMap(({ inputs }) => Object.entries(inputs));
  const files = parts.filter(([, { bytesInOutput }]) => bytesInOutput > 0).map(([file]) => file);
  return { code: await output.text(), files };
}
