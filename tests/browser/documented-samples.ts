/** Checks and bundles the code samples of a page of documentation. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { bundle } from '../page/client/bundle.ts';
import { samplesIn } from '../support/samples.ts';

const ROOT = new URL('../..', import.meta.url).pathname;

/**
 * Writes the samples to files in a folder of their own.
 *
 * @param replacements what stands for the addresses that the samples are written with
 */
export async function writeSamples(page: string, replacements: Readonly<Record<string, string>> = {}) {
  const folder = await mkdtemp(`${tmpdir()}/documented-samples-`);
  const client = { "'music-gateway-client'": `'${ROOT}src/client/index.ts'` };
  const samples = samplesIn(await Bun.file(ROOT + page).text(), { ...replacements, ...client });
  // Those for React need its package, and are checked in an app that has it.
  const names = [...samples.keys()].filter((name) => name.endsWith('.ts'));
  for (const name of names) await Bun.write(`${folder}/${name}`, samples.get(name) ?? '');
  const tsconfig = { extends: `${ROOT}src/demo/studio/tsconfig.json`, include: ['*.ts'] };
  await Bun.write(`${folder}/tsconfig.json`, JSON.stringify(tsconfig));
  return { folder, names, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
}

/** What the compiler has against them; nothing when it accepts all. */
export async function typeErrors(folder: string): Promise<string> {
  const check = Bun.spawn([process.execPath, 'check', '--no-script', '--no-pretty', '-p', folder], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const outputs = [new Response(check.stdout).text(), new Response(check.stderr).text()];
  const [output, errors] = await Promise.all(outputs);
  return (await check.exited) === 0 ? '' : `${output}${errors}`;
}

/** A script that makes everything that these samples export a member of the page's `samples`. */
export async function scriptOf(folder: string, names: readonly string[]): Promise<string> {
  const imports = names.map((name, index) => `import * as s${index} from '${folder}/${name}';`);
  const members = names.map((_, index) => `...s${index}`);
  const { code } = await bundle(
    `${imports.join('\n')}\nObject.assign(window, { samples: { ${members.join(', ')} } });`,
  );
  return code;
}
