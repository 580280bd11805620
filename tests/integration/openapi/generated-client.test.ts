import { expect, it } from 'bun:test';
import { $ } from 'bun';
import { ROOT } from '../../support/documents.ts';
import { createFolder } from '../../support/temporary-folder.ts';

// That its calls succeed: document.test.ts, and the client's own tests.
it('a client that is generated from the OpenAPI document knows every body but the upstream’s, and compiles in a program', async () => {
  await using temporary = await createFolder();
  const folder = temporary.path;
  const types = `${folder}/gateway-api.d.ts`;
  const run = (command: string[]) => $`${process.execPath} ${command}`.cwd(ROOT).quiet();
  const document = 'src/gateway/openapi/openapi.yaml';
  await run(['run', '--bun', '--silent', 'openapi-typescript', document, '-o', types]);
  const text = await Bun.file(types).text();
  expect(text).toContain('generateTrack');
  expect(text.match(/.*\| unknown\b.*|.*": unknown;|.*\b[Oo]rigin"?\??:.*/g)).toBeNull();

  const paths = { 'gateway-api': [types] };
  const compilerOptions = { lib: ['ESNext', 'DOM'], types: [], skipLibCheck: false, paths };
  const files = [`${import.meta.dir}/generated-client/program.ts`];
  const project = { extends: `${ROOT}tsconfig.json`, files, include: [], compilerOptions };
  await Bun.write(`${folder}/tsconfig.json`, JSON.stringify(project));
  await run(['check', '--no-script', '--no-pretty', '-p', folder]);
}, 60_000);
