import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { Type } from '@sinclair/typebox';
import type { Sandbox } from '../../src/demo/sandbox/sandbox.ts';
import { CookieJar } from '../../src/demo/tour/cookie-jar.ts';
import { signInThroughForm } from '../../src/demo/tour/sign-in-through-form.ts';
import { createGateway } from '../../src/gateway/gateway.ts';
import { recordLog } from '../support/recorded-log.ts';
import { readJson, SANDBOX_CLIENT, startTestSandbox } from '../support/sandbox-account.ts';
import { ORIGIN, testSettings } from '../support/world.ts';

const Creation = Type.Object({ data: Type.Object({ id: Type.String(), status: Type.String() }) });

let sandbox: Sandbox;
let gateway: ReturnType<typeof createGateway>;
let base: URL;
beforeAll(async () => {
  sandbox = await startTestSandbox({ pace: 20 });
  const settings = testSettings({
    UPSTREAM_URL: sandbox.upstream.url,
    IDP_URL: sandbox.identityProviderUrl,
    IDP_CLIENT_ID: SANDBOX_CLIENT.clientId,
    IDP_REDIRECT_URI: SANDBOX_CLIENT.redirectUri,
  });
  gateway = createGateway({ settings, logger: recordLog().logger });
  gateway.listen({ port: 0, hostname: '127.0.0.1' });
  base = new URL(`http://127.0.0.1:${gateway.server?.port}`);
});
afterAll(async () => {
  await gateway.stop(true);
  await sandbox.stop();
});

/** Sends requests as a browser does that has signed in through the identity provider's form. */
async function signedIn(name: string) {
  const jar = new CookieJar();
  const { identityProviderUrl } = sandbox;
  const grant = await signInThroughForm({ ...SANDBOX_CLIENT, identityProviderUrl, name, jar });
  const send = (path: string, method = 'GET', body?: unknown) =>
    jar.fetch(new URL(path, base), {
      method,
      headers: { origin: ORIGIN, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const answer = await send('/api/auth/idp', 'POST', { code: grant.code, code_verifier: grant.codeVerifier });
  expect(await answer.text()).toBe('{"ok":true}');
  return send;
}

const TRACK = { model: 'sandbox-music-1', prompt: 'a quiet harbour', music_length_ms: 20_000 };

describe('the gateway with a real OAuth server and rotating refresh tokens', () => {
  it('answers thirty parallel calls with one expired pair after one refresh', async () => {
    const send = await signedIn('Thirty');
    const before = sandbox.upstream.counts();
    sandbox.upstream.expireAccessTokens();
    const paths = ['/api/auth/session', '/api/music/models', '/api/upstream/v1/billing/balance'];
    const answers = await Promise.all(Array.from({ length: 30 }, (_, index) => send(paths[index % 3] ?? '')));
    expect(answers.map(({ status }) => status)).toEqual(Array(30).fill(200));
    const after = sandbox.upstream.counts();
    expect(after.refreshes - before.refreshes).toBe(1);
    expect(after.refusedRefreshes).toBe(before.refusedRefreshes);
    expect((await send('/api/auth/session')).status).toBe(200);
  });

  it('delivers the first of a track while the upstream still generates', async () => {
    const send = await signedIn('First byte');
    const response = await send('/api/music/generate', 'POST', TRACK);
    const reader = response.body?.getReader();
    const first = await reader?.read();
    expect(
      Buffer.from(first?.value ?? [])
        .subarray(0, 4)
        .toString(),
    ).toBe('RIFF');
    const id = response.headers.get('x-music-creation-id');
    const creation = await readJson(await send(`/api/upstream/v1/music/creations/${id}`), Creation);
    expect(creation.data.status).toBe('generating');
    while (!(await reader?.read())?.done);
    const finished = await readJson(await send(`/api/upstream/v1/music/creations/${id}`), Creation);
    expect(finished.data.status).toBe('ready');
  });

  it('refuses a code that has been used', async () => {
    const jar = new CookieJar();
    const { identityProviderUrl } = sandbox;
    const { code, codeVerifier } = await signInThroughForm({ ...SANDBOX_CLIENT, identityProviderUrl, jar });
    const signIn = () =>
      jar.fetch(new URL('/api/auth/idp', base), {
        method: 'POST',
        headers: { origin: ORIGIN, 'content-type': 'application/json' },
        body: JSON.stringify({ code, code_verifier: codeVerifier }),
      });
    expect((await signIn()).status).toBe(200);
    expect((await signIn()).status).toBe(400);
  });

  it('has no session at the upstream after signing out', async () => {
    const send = await signedIn('Leaving');
    const before = sandbox.upstream.counts();
    expect(await (await send('/api/auth/logout', 'POST')).text()).toBe('{"ok":true}');
    expect(sandbox.upstream.counts().logouts - before.logouts).toBe(1);
    expect((await send('/api/music/models')).status).toBe(401);
  });
});
