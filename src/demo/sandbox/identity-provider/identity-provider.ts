/** The sandbox's identity provider: a certified OAuth server whose login form accepts anybody. */

import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ClientMetadata, Configuration } from 'oidc-provider';
import { createMemoryAdapter } from 'oidc-provider/lib/adapters/memory_adapter.js';
// Not from 'oidc-provider': its index prints "Unsupported runtime" under Bun.
import { Provider } from 'oidc-provider/lib/provider.js';
import { messagePage, pagePolicy } from './login-page.ts';
import { accountClaims, answerSignIn, SIGN_IN_PATH } from './sign-in-form.ts';

/** What makes the client a confidential one. */
export type ClientCredentials = Pick<
  ClientMetadata,
  'token_endpoint_auth_method' | 'token_endpoint_auth_signing_alg' | 'client_secret' | 'jwks'
>;

export interface IdentityProviderOptions {
  /** 0: any free port. */
  port: number;
  hostname: string;
  /** The one client: authorization code with PKCE S256; public unless credentials are given. */
  clientId: string;
  credentials?: ClientCredentials;
  /** Accepted exactly as written. */
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
 * Consent is granted without asking. A taken port rejects with the EADDRINUSE error.
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
    const answer = await answerSignIn(provider, ctx.req, ctx.res);
    ctx.status = answer.status;
    ctx.set({ 'Cache-Control': 'no-store', 'Content-Security-Policy': policy });
    if (answer.status === 303) ctx.redirect(answer.location);
    else ctx.body = answer.html;
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
    // The package's own, passed on purpose: with none it warns that everything is lost at the end.
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
    // No cookie keys: the cookies hold nothing but unguessable ids, and checking signatures prints a deprecation
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
    // Only the gateway calls the token endpoint, never a page.
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
      ctx.body = messagePage('This sign-in cannot go on', description ?? error);
    },
  };
}
