import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
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

// That its calls succeed: responses.test.ts, and the client's own tests.
describe('a client that is generated from the OpenAPI document', () => {
  let folder = '';
  let types = '';
  beforeAll(async () => {
    folder = await mkdtemp(`${tmpdir()}/generated-client-`);
    types = `${folder}/gateway-api.d.ts`;
    await succeed('run', '--bun', '--silent', 'openapi-typescript', DOCUMENT, '-o', types);
  }, 60_000);
  afterAll(() => rm(folder, { recursive: true }));

  it('has types that leave nothing of a body unknown but what the upstream alone knows', async () => {
    const text = await Bun.file(types).text();
    expect(text).toContain('generateTrack');
    expect(text.match(/.*\| unknown\b.*|.*": unknown;|.*\b[Oo]rigin"?\??:.*/g)).toBeNull();
  });

  it('lets a program compile that uses every typical path', async () => {
    const compilerOptions = {
      lib: ['ESNext', 'DOM'],
      types: [],
      skipLibCheck: false,
      paths: { 'gateway-api': [types] },
    };
    const tsconfig = { extends: `${ROOT}tsconfig.json`, compilerOptions, files: [PROGRAM], include: [] };
    await Bun.write(`${folder}/tsconfig.json`, JSON.stringify(tsconfig));
    await succeed('check', '--no-script', '--no-pretty', '-p', folder);
  });
});
