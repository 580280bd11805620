import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { Type } from '@sinclair/typebox';
import { CookieJar } from '../../../src/demo/tour/cookie-jar.ts';
import { signInThroughForm } from '../../../src/demo/tour/sign-in-through-form.ts';
import { readJson, SANDBOX_CLIENT } from '../../support/sandbox-account.ts';
import { type SandboxGateway, startSandboxGateway } from '../../support/sandbox-gateway.ts';
import { ORIGIN } from '../../support/world.ts';

const Creation = Type.Object({ data: Type.Object({ id: Type.String(), status: Type.String() }) });
const TRACK = { model: 'sandbox-music-1', prompt: 'a quiet harbour', music_length_ms: 20_000 };

let world: SandboxGateway;
beforeAll(async () => {
  world = await startSandboxGateway(ORIGIN, 20);
});
afterAll(() => world[Symbol.asyncDispose]());

/** Sends requests as a browser does that has signed in through the identity provider's form. */
async function signedIn(name: string) {
  const jar = new CookieJar();
  const { redirectUri, sandbox } = world;
  const { identityProviderUrl } = sandbox;
  const { clientId } = SANDBOX_CLIENT;
  const grant = await signInThroughForm({ clientId, redirectUri, identityProviderUrl, name, jar });
  const send = (path: string, method = 'GET', body?: unknown) =>
    jar.fetch(new URL(path, world.url), {
      method,
      headers: { origin: ORIGIN, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const signIn = () => send('/api/auth/idp', 'POST', { code: grant.code, code_verifier: grant.codeVerifier });
  expect(await (await signIn()).text()).toBe('{"ok":true}');
  return { send, signInAgain: signIn };
}

describe('the gateway with a real OAuth server and rotating refresh tokens', () => {
  it('serves thirty parallel calls with one expired pair after one refresh', async () => {
    const { send } = await signedIn('Thirty');
    const { upstream } = world.sandbox;
    const before = upstream.counts();
    upstream.expireAccessTokens();
    const paths = ['/api/auth/session', '/api/music/models', '/api/upstream/v1/billing/balance'];
    const calls = Array.from({ length: 30 }, (_, index) => send(paths[index % 3] ?? ''));
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(30).fill(200));
    const { refreshes, refusedRefreshes } = upstream.counts();
    expect(refreshes - before.refreshes).toBe(1);
    expect(refusedRefreshes).toBe(before.refusedRefreshes);
    expect((await send('/api/auth/session')).status).toBe(200);
  });

  it('delivers the beginning of a track while the upstream still generates', async () => {
    const { send } = await signedIn('First byte');
    const response = await send('/api/music/generate', 'POST', TRACK);
    const id = response.headers.get('x-music-creation-id');
    const status = async () =>
      (await readJson(await send(`/api/upstream/v1/music/creations/${id}`), Creation)).data.status;
    const reader = response.body?.getReader();
    const first = Buffer.from((await reader?.read())?.value ?? []);
    expect(first.subarray(0, 4).toString()).toBe('RIFF');
    expect(await status()).toBe('generating');
    while (!(await reader?.read())?.done);
    expect(await status()).toBe('ready');
  });

  it('refuses a code that has been used', async () => {
    const { signInAgain } = await signedIn('Twice');
    expect((await signInAgain()).status).toBe(400);
  });

  it('has no session at the upstream after signing out', async () => {
    const { send } = await signedIn('Leaving');
    const before = world.sandbox.upstream.counts().logouts;
    expect(await (await send('/api/auth/logout', 'POST')).text()).toBe('{"ok":true}');
    expect(world.sandbox.upstream.counts().logouts - before).toBe(1);
    expect((await send('/api/music/models')).status).toBe(401);
  });
});
