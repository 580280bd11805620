import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { wavSize } from '../../../src/demo/sandbox/audio/wav.ts';
import { CookieJar } from '../../../src/demo/tour/cookie-jar.ts';
import { signInThroughForm } from '../../../src/demo/tour/sign-in-through-form.ts';
import { messages } from '../../../src/gateway/http/messages.ts';
import { runToEnd } from '../../support/run-to-end.ts';
import { SANDBOX_CLIENT } from '../../support/sandbox-account.ts';
import { startSandboxGateway } from '../../support/sandbox-gateway.ts';
import { ORIGIN } from '../../support/world.ts';

const ROOT = new URL('../../..', import.meta.url).pathname;
const DOCUMENT = `${ROOT}src/gateway/openapi/openapi.yaml`;
const PROGRAM = `${import.meta.dir}/generated-client/program.ts`;

async function succeed(...command: string[]): Promise<void> {
  const { status, output, errors } = await runToEnd([process.execPath, ...command], { cwd: ROOT });
  if (status) throw new Error(`${command.join(' ')}:\n${output}${errors}`);
}

let folder = '';
let types = '';
beforeAll(async () => {
  folder = await mkdtemp(`${tmpdir()}/generated-client-`);
  types = `${folder}/gateway-api.d.ts`;
  await succeed('run', '--bun', '--silent', 'openapi-typescript', DOCUMENT, '-o', types);
}, 60_000);
afterAll(() => rm(folder, { recursive: true }));

describe('a client that is generated from the OpenAPI document', () => {
  it('has types that leave nothing of a body unknown but what the upstream alone knows', async () => {
    const text = await Bun.file(types).text();
    expect(text.match(/.*\| unknown\b.*/g)).toBeNull();
    expect(text.match(/.*": unknown;/g)).toBeNull();
    expect(text.match(/.*\b[Oo]rigin"?\??:.*/g)).toBeNull();
  });

  it('lets a program compile that uses every typical path', async () => {
    const tsconfig = {
      extends: `${ROOT}tsconfig.json`,
      compilerOptions: {
        lib: ['ESNext', 'DOM'],
        types: [],
        skipLibCheck: false,
        paths: { 'gateway-api': [types] },
      },
      files: [PROGRAM],
      include: [],
    };
    await Bun.write(`${folder}/tsconfig.json`, JSON.stringify(tsconfig));
    await succeed('check', '--no-script', '--no-pretty', '-p', folder);
  });

  it('lets that program do all that a studio does', async () => {
    await using gateway = await startSandboxGateway();
    const { identityProviderUrl, upstream } = gateway.sandbox;
    const { clientId } = SANDBOX_CLIENT;
    const { redirectUri } = gateway;
    const grant = await signInThroughForm({ identityProviderUrl, clientId, redirectUri, name: 'Ada' });
    const jar = new CookieJar();
    const { useGateway } = await import(PROGRAM);
    const outcome = await useGateway(
      gateway.url,
      // As a browser: it adds the page's origin and the cookies.
      async ({ url, method, headers, body }: Request) => {
        headers.set('origin', ORIGIN);
        return jar.fetch(new URL(url), { method, headers, body: (await new Response(body).text()) || null });
      },
      { code: grant.code, code_verifier: grant.codeVerifier },
    );
    expect(outcome).toMatchObject({
      refusal: messages.en.notSignedIn,
      isDone: true,
      name: 'Ada',
      models: expect.arrayContaining([expect.objectContaining({ id: 'sandbox-music-1' })]),
      bytes: [wavSize(3000), 100, wavSize(3000)],
      isPublic: [true, true, true],
      creations: [{ is_public: true }],
      balance: 4997,
      generations: 1,
      activity: [{ type: 'visibility' }, { type: 'generation' }, { type: 'sign_in' }],
      profile: { name: 'Ada' },
      notFound: [404, 'There is no such creation'],
      isSignedOut: true,
    });
    expect(upstream.counts().generations).toBe(1);
  });
});
