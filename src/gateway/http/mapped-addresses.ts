/** Maps the upstream's addresses in response headers to the paths at which the gateway serves them. */

export interface AddressMapping {
  /** The address of the call; relative addresses are resolved against it. */
  readonly requestUrl: string;
  /** The upstream's base address. */
  readonly upstreamUrl: string;
  /** The path at which the gateway serves that address. */
  readonly gatewayPath: string;
}

/** Undefined for an address on the upstream's host that the gateway does not serve: it would reveal the host. */
export function mapAddress(address: string, mapping: AddressMapping): string | undefined {
  const { requestUrl, upstreamUrl, gatewayPath } = mapping;
  const url = URL.parse(address, requestUrl);
  if (!url) return undefined;
  if (url.href.startsWith(`${upstreamUrl}/v1/`)) return gatewayPath + url.href.slice(upstreamUrl.length);
  return hostName(url) === hostName(new URL(upstreamUrl)) ? undefined : address;
}

/** Without the port, at which the upstream may name itself by mistake, and without the dot that may end it. */
function hostName({ hostname }: URL): string {
  return hostname.replace(/\.$/, '');
}

/** More than pagination needs. Bun does not limit the header, and mapping makes each relative address longer. */
const MAX_LINKS = 50;
const MAX_LINK_CHARACTERS = 16 * 1024;
const BETWEEN_LINKS = /,[\t ]*(?=<)/;
/** A target, its parameters, and perhaps empty members. No part can match in two ways, so that no header takes long. */
const LINK = /^<([^<>]*)>([\t ]*(?:;[^"<>;,]*(?:"(?:[^"\\]|\\.)*"[\t ]*)?)*)(?:,[\t ,]*)?$/;

/**
 * Maps the targets of a `Link` header. A link is dropped when its target cannot be mapped, or when its parameters cannot
 * be parsed or name the upstream's host. Undefined when no link is left or the header is too long.
 *
 * @see RFC 8288 section 3
 */
export function mapLinks(header: string, mapping: AddressMapping): string | undefined {
  if (header.length > MAX_LINK_CHARACTERS) return undefined;
  const address = `//${hostName(new URL(mapping.upstreamUrl))}`;
  const links = header.split(BETWEEN_LINKS, MAX_LINKS).flatMap((link) => {
    const [, target, parameters = ''] = LINK.exec(link) ?? [];
    // A parameter can be a URL as well, and a backslash in its quotes means nothing.
    const revealsHost = parameters.replaceAll('\\', '').toLowerCase().includes(address);
    const mapped = target === undefined || revealsHost ? undefined : mapAddress(target, mapping);
    return mapped === undefined ? [] : `<${mapped}>${parameters}`;
  });
  return links.length ? links.join(', ') : undefined;
}
