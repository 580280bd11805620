/** The sandbox's identity provider: a certified OAuth server whose login form accepts any name. */

import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ClientMetadata, Configuration } from 'oidc-provider';
import { createMemoryAdapter } from 'oidc-provider/lib/adapters/memory_adapter.js';
// The package's index is not imported, because it prints "Unsupported runtime" under Bun.
import { Provider } from 'oidc-provider/lib/provider.js';
import { messagePage, pagePolicy } from './login-page.ts';
import { accountClaims, handleSignIn, SIGN_IN_PATH } from './sign-in-form.ts';

/** The metadata that makes the client a confidential one. */
export type ClientCredentials = Pick<
  ClientMetadata,
  'token_endpoint_auth_method' | 'token_endpoint_auth_signing_alg' | 'client_secret' | 'jwks'
>;

export interface IdentityProviderOptions {
  /** 0 picks any free port. */
  port: number;
  hostname: string;
  /** The only client. It uses authorization codes with PKCE S256, and is public unless it has credentials. */
  clientId: string;
  credentials?: ClientCredentials;
  /** A redirect URI must match one of these exactly. */
  redirectUris: readonly string[];
}

export interface IdentityProvider {
  /** The issuer, without a trailing slash. */
  url: string;
  stop(): Promise<void>;
}

const DAY_SECONDS = 24 * 60 * 60;
const SCOPES = ['openid', 'profile'];

/**
 * Starts an identity provider with `/oauth/authorize`, `/oauth/token` and `/oauth/userinfo`.
 * It grants consent without asking. Rejects with the EADDRINUSE error if the port is taken.
 */
export async function startIdentityProvider(options: IdentityProviderOptions): Promise<IdentityProvider> {
  const server = createServer();
  server.listen(options.port, options.hostname);
  await once(server, 'listening');

  const url = `http://${options.hostname}:${portOf(server.address())}`;
  const policy = pagePolicy(options.redirectUris.map((uri) => new URL(uri).origin));
  const provider = new Provider(url, configuration(options, policy));
  provider.use(async (ctx, next) => {
    if (!ctx.path.startsWith(SIGN_IN_PATH)) return next();
    const signInResponse = await handleSignIn(provider, ctx.req, ctx.res);
    ctx.status = signInResponse.status;
    ctx.set({ 'Cache-Control': 'no-store', 'Content-Security-Policy': policy });
    if (signInResponse.status === 303) ctx.redirect(signInResponse.location);
    else ctx.body = signInResponse.html;
  });
  provider.on('server_error', (_ctx, error) => console.error('Sandbox identity provider:', error));
  server.on('request', provider.callback());

  return {
    url,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new TypeError('The server has no port');
  return address.port;
}

function configuration(options: IdentityProviderOptions, policy: string): Configuration {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    // This is the default adapter. It is passed explicitly, because otherwise the package warns about data loss.
    adapter: createMemoryAdapter(),
    clients: [
      {
        client_id: options.clientId,
        redirect_uris: [...options.redirectUris],
        token_endpoint_auth_method: 'none',
        id_token_signed_response_alg: 'ES256',
        ...options.credentials,
      },
    ],
    // Cookies are not signed: they contain only unguessable ids, and checking a signature prints a deprecation
    // warning under Bun.
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig' }] },
    routes: { authorization: '/oauth/authorize', token: '/oauth/token', userinfo: '/oauth/userinfo' },
    scopes: SCOPES,
    claims: { openid: ['sub', 'name'], profile: ['name', 'preferred_username'] },
    pkce: { required: () => true },
    features: {
      devInteractions: { enabled: false },
      dPoP: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      resourceIndicators: { enabled: false },
      rpInitiatedLogout: { enabled: false },
    },
    // No page calls the token endpoint, only the gateway does.
    clientBasedCORS: () => false,
    ttl: {
      AccessToken: 300,
      AuthorizationCode: 60,
      Grant: DAY_SECONDS,
      IdToken: 300,
      Interaction: 3600,
      Session: DAY_SECONDS,
    },
    interactions: { url: (_ctx, interaction) => `${SIGN_IN_PATH}${interaction.uid}` },
    findAccount: (_ctx, accountId) => ({ accountId, claims: () => accountClaims(accountId) }),
    async loadExistingGrant({ oidc }) {
      const grant = new oidc.provider.Grant({
        accountId: oidc.session?.accountId,
        clientId: oidc.client?.clientId,
      });
      grant.addOIDCScope(SCOPES.join(' '));
      await grant.save();
      return grant;
    },
    renderError(ctx, { error, error_description: description }) {
      ctx.type = 'html';
      ctx.set('Content-Security-Policy', policy);
      const known = error === 'invalid_redirect_uri' ? `: ${options.redirectUris.join(', ')}` : '';
      const message = (description ?? error) + known;
      ctx.body = messagePage('This sign-in cannot go on', message);
    },
  };
}
