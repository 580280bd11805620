/** Finds slips in values with which the gateway starts all the same. */

import type { Environment } from '../gateway/settings/environment-reader.ts';
import type { Settings } from '../gateway/settings/settings.ts';
import { isLocal } from '../gateway/settings/values.ts';
import type { Finding } from './finding.ts';

/** Finds values that are valid, but do not fit together or cannot be meant. */
export function valueFindings(settings: Settings, environment: Environment): Finding[] {
  const { upstreamUrl, identityProvider, allowedOrigins, production, forwardClientAddress } = settings;
  const findings: Finding[] = [];
  const warn = (text: string) => findings.push({ level: 'warning', text });
  if (upstreamUrl.endsWith('/v1')) {
    const text = `UPSTREAM_URL: ${upstreamUrl} ends with /v1, which every call adds: leave it out`;
    findings.push({ level: 'error', text });
  }
  for (const uri of identityProvider.redirectUris) {
    const { protocol, origin } = new URL(uri);
    // An app may have a scheme of its own.
    if (/^https?:$/.test(protocol) && !allowedOrigins.has(origin)) {
      warn(`IDP_REDIRECT_URI: its origin ${origin} is not in ALLOWED_ORIGINS: a page there cannot sign in`);
    }
  }
  for (const allowed of allowedOrigins) {
    const url = new URL(allowed);
    if (production && url.protocol === 'http:' && !isLocal(url.hostname)) {
      warn(
        `ALLOWED_ORIGINS: ${allowed} has no TLS: anyone on the way can change that page, and browsers may ` +
          'withhold the Secure cookies from it',
      );
    }
  }
  if (forwardClientAddress && !environment['TRUSTED_PROXIES']?.trim()) {
    warn('FORWARD_CLIENT_ADDRESS without TRUSTED_PROXIES: behind a proxy, all clients have its address');
  }
  return findings;
}
