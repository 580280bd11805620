import { describe, expect, it } from 'bun:test';
import { signInThroughForm } from '../../../src/demo/tour/sign-in-through-form.ts';
import { SANDBOX_CLIENT, startTestSandbox } from '../../support/sandbox-account.ts';
import { expectRefused, scriptSignIn, signIn, TOKEN } from '../../support/session-calls.ts';
import { startWorld } from '../../support/world.ts';

const STUDIO = 'http://studio.test';
const PLAYER = 'http://player.test:8080';
/** May play public tracks, but nobody signs in there. */
const SHOWCASE = 'http://showcase.test';
const REDIRECT_URIS = { [STUDIO]: `${STUDIO}/callback`, [PLAYER]: `${PLAYER}/?from=login` };
const ALLOWED_ORIGINS = [STUDIO, PLAYER, SHOWCASE].join(',');
const LIST = { ALLOWED_ORIGINS, IDP_REDIRECT_URI: Object.values(REDIRECT_URIS).join(', ') };

describe('POST /api/auth/idp with a redirect URI for each origin', () => {
  it('exchanges a code for the page that has requested it, and for no other', async () => {
    const sandbox = await startTestSandbox({ redirectUris: Object.values(REDIRECT_URIS) });
    await using stack = new AsyncDisposableStack();
    stack.defer(() => sandbox.stop());
    const { identityProviderUrl, upstream } = sandbox;
    const { clientId } = SANDBOX_CLIENT;
    const addresses = { UPSTREAM_URL: upstream.url, IDP_URL: identityProviderUrl, IDP_CLIENT_ID: clientId };
    const world = stack.use(startWorld({ ...LIST, ...addresses }));
    const statusOf = async (redirectUri: string, origin: string) => {
      const { code, codeVerifier } = await signInThroughForm({ identityProviderUrl, clientId, redirectUri });
      const response = await signIn(world, { code, code_verifier: codeVerifier }, { origin });
      return response.status;
    };
    for (const [origin, redirectUri] of Object.entries(REDIRECT_URIS)) {
      expect([origin, await statusOf(redirectUri, origin)]).toEqual([origin, 200]);
    }
    expect(upstream.counts().signIns).toBe(2);
    expect(await statusOf(REDIRECT_URIS[STUDIO] ?? '', PLAYER)).toBe(400);
    expect(upstream.counts().signIns).toBe(2);
  });

  it('refuses an allowed origin that has none with 403, and sends nothing to the identity provider', async () => {
    await using world = startWorld(LIST);
    scriptSignIn(world);
    for (const grant of [undefined, {}]) {
      const response = await signIn(world, grant, { origin: SHOWCASE });
      expect(response.headers.get('access-control-allow-origin')).toBe(SHOWCASE);
      await expectRefused(response, 403, 'signInNotSetUp');
    }
    expect(world.upstream.calls).toEqual([]);
    expect(world.lines.at(-1)).toMatchObject({ status: 403, reason: 'signInNotSetUp' });
  });
});

describe('POST /api/auth/idp with a single redirect URI', () => {
  it('sends it for every allowed origin, of whatever origin it is itself', async () => {
    const redirectUri = 'https://elsewhere.test/callback';
    await using world = startWorld({ ALLOWED_ORIGINS, IDP_REDIRECT_URI: redirectUri });
    scriptSignIn(world);
    for (const origin of [STUDIO, PLAYER, SHOWCASE]) {
      const response = await signIn(world, undefined, { origin });
      expect(response.status).toBe(200);
      const form = new URLSearchParams(world.upstream.last(TOKEN).body);
      expect(form.get('redirect_uri')).toBe(redirectUri);
    }
  });
});
