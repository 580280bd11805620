import { expect } from 'bun:test';
import { Type } from '@sinclair/typebox';
import { signInThroughForm } from '../../../src/demo/tour/sign-in-through-form.ts';
import { readDocument } from '../../support/documents.ts';
import { itWith, program } from '../../support/requirements.ts';
import { exchangeCode, readJson, SANDBOX_CLIENT, startTestSandbox } from '../../support/sandbox-account.ts';
import { createFolder } from '../temporary-folder.ts';

/** A call of the page, and what comes back, in which `...` stands for anything. */
const EXAMPLE = /```sh\n(.*?)```\n(?:\n```\w+\n(.*?)```)?/gs;

/** Whether each line of the expected text, or its JSON, is in what was printed. */
function problemsWith(printed: string, expected: string): string[] {
  const pattern = (line: string) =>
    new RegExp(`^${RegExp.escape(line.trim()).replaceAll('\\.\\.\\.', '.+')}\\r?$`, 'im');
  const compact = (text: string) =>
    text.trimStart().startsWith('{') ? JSON.stringify(JSON.parse(text)) : text;
  const lines = compact(expected).trim().split('\n').filter(Boolean);
  return lines.filter((line) => !pattern(line).test(printed)).map((line) => `no ${line} in: ${printed}`);
}

itWith([program('curl')], 'the sandbox is what the page about your API says, word for word', async () => {
  await using stack = new AsyncDisposableStack();
  const { path: cwd } = stack.use(await createFolder());
  const sandbox = await startTestSandbox();
  stack.defer(() => sandbox.stop());
  const { identityProviderUrl, upstream } = sandbox;
  const grant = await signInThroughForm({ ...SANDBOX_CLIENT, identityProviderUrl, name: 'Ada' });
  const identity = await exchangeCode(sandbox, grant.code, grant.codeVerifier);
  const { access_token: token } = await readJson(identity, Type.Object({ access_token: Type.String() }));
  const variables = new Map([
    ['API', upstream.url],
    ['IDENTITY', token],
    ['KEY', crypto.randomUUID()],
  ]);
  const { text } = await readDocument('deploy/your-api.md');
  const examples = [...text.matchAll(EXAMPLE)];
  expect(examples).toHaveLength(7);
  for (const [, command = '', expected = ''] of examples) {
    const env = { PATH: process.env['PATH'], ...Object.fromEntries(variables) };
    // Not `spawnSync`: the sandbox is in this process.
    const call = Bun.spawn(['sh', '-c', command], { cwd, env, stdout: 'pipe' });
    const printed = await call.stdout.text();
    expect([await call.exited, ...problemsWith(printed, expected)]).toEqual([0]);
    const found = [
      ['ACCESS', /"access_token":"([^"]+)"/],
      ['REFRESH', /"refresh_token":"([^"]+)"/],
      ['CREATION', /^x-music-creation-id: (\S+)/im],
    ] as const;
    for (const [name, place] of found) {
      const value = place.exec(printed)?.[1];
      if (value !== undefined) variables.set(name, value);
    }
  }
});
