import { expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { ROOT } from '../../support/documents.ts';
import { runToEnd } from '../../support/run-to-end.ts';

const DOCUMENT = `${ROOT}src/gateway/openapi/openapi.yaml`;
const PROGRAM = `${import.meta.dir}/generated-client/program.ts`;

async function succeed(...command: string[]): Promise<void> {
  const { status, output, errors } = await runToEnd([process.execPath, ...command], { cwd: ROOT });
  if (status) throw new Error(`${command.join(' ')}:\n${output}${errors}`);
}

// That its calls succeed: document.test.ts, and the client's own tests.
it('a client that is generated from the OpenAPI document knows every body but the upstream’s, and compiles in a program', async () => {
  const folder = await mkdtemp(`${tmpdir()}/generated-client-`);
  const types = `${folder}/gateway-api.d.ts`;
  await succeed('run', '--bun', '--silent', 'openapi-typescript', DOCUMENT, '-o', types);
  const text = await Bun.file(types).text();
  expect(text).toContain('generateTrack');
  expect(text.match(/.*\| unknown\b.*|.*": unknown;|.*\b[Oo]rigin"?\??:.*/g)).toBeNull();

  const options = {
    lib: ['ESNext', 'DOM'],
    types: [],
    skipLibCheck: false,
    paths: { 'gateway-api': [types] },
  };
  const extended = { extends: `${ROOT}tsconfig.json`, files: [PROGRAM], include: [] };
  await Bun.write(`${folder}/tsconfig.json`, JSON.stringify({ ...extended, compilerOptions: options }));
  await succeed('check', '--no-script', '--no-pretty', '-p', folder);
  await rm(folder, { recursive: true });
}, 60_000);
