/** Decides whether the page that a request comes from may use the gateway. */

import { GatewayError } from '../http/errors.ts';
import type { Settings } from '../settings/settings.ts';
import { canonicalAddress } from '../settings/trusted-proxies.ts';
import type { Exchange } from './exchange.ts';

type OriginSettings = Pick<Settings, 'allowedOrigins' | 'isTrustedProxy' | 'production' | 'sameOrigin'>;

export class OriginRule {
  readonly #settings: OriginSettings;
  /** Of the allowed origins; none unless the page may have the gateway's own origin. */
  readonly #hosts: ReadonlySet<string | undefined>;

  constructor(settings: OriginSettings) {
    const { allowedOrigins, sameOrigin } = settings;
    this.#settings = settings;
    this.#hosts = new Set(sameOrigin ? [...allowedOrigins].flatMap(hostsOf) : []);
  }

  /** Whether the request names an allowed origin, which the response has to name as well. */
  names({ origin }: Exchange): boolean {
    return origin !== null && this.#settings.allowedOrigins.has(origin);
  }

  /**
   * With a GET to the page's own origin a browser sends no `Origin`. It says in `Sec-Fetch-Site`, which no script can
   * set, that this is its own origin, and `Host` says which one: a page whose domain leads here is on another host.
   *
   * @see W3C Fetch Metadata Request Headers, section 2.3
   */
  allows(exchange: Exchange): boolean {
    const { origin, request } = exchange;
    if (origin !== null || !this.#hosts.size) return this.names(exchange);
    return request.headers.get('sec-fetch-site') === 'same-origin' && this.#hosts.has(this.#hostOf(exchange));
  }

  /** Outside production it says what the request lacks, and what to send. */
  refusal({ origin }: Exchange): GatewayError {
    const isExplained = origin === null && !this.#settings.production;
    return new GatewayError(403, isExplained ? 'originMissing' : 'originNotAllowed');
  }

  #hostOf({ request, server }: Exchange): string | undefined {
    const { headers } = request;
    const forwarded = headers.get('x-forwarded-host');
    const peer = forwarded && canonicalAddress(server?.requestIP(request)?.address ?? '');
    // Each proxy appends an entry. The peer has written the last one; a client could have written the others.
    const named = peer && this.#settings.isTrustedProxy(peer) ? lastEntry(forwarded) : headers.get('host');
    return named?.toLowerCase();
  }
}

function lastEntry(list: string): string {
  return list.slice(list.lastIndexOf(',') + 1).trim();
}

/** The host as browsers write it, and with the default port, as some proxies do. */
function hostsOf(origin: string): string[] {
  const { protocol, host, hostname, port } = new URL(origin);
  return port ? [host] : [host, `${hostname}:${protocol === 'https:' ? 443 : 80}`];
}
