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
  const url = URL.parse(address, mapping.requestUrl);
  if (!url) return undefined;
  const served = `${mapping.upstreamUrl}/v1/`;
  if (url.href.startsWith(served)) return mapping.gatewayPath + url.href.slice(mapping.upstreamUrl.length);
  return url.host === hostOf(mapping) ? undefined : address;
}

/** More than pagination needs. Bun does not limit the header, and mapping makes each relative address longer. */
const MAX_LINKS = 50;
const MAX_LINK_CHARACTERS = 16 * 1024;
const CHUNK = /<[^>]*>|"[^"\\]*(?:\\.[^"\\]*)*"|[^<",]+|,/gsy;
const LINK = /^<([^<>]*)>(.*)$/s;
/** Includes the semicolon, and accepts values that are neither tokens nor quoted strings, such as `type=audio/mpeg`. */
const PARAMETER =
  /[\t ]*;[\t ]*(?:([^\t "<>=;,]+)[\t ]*(?:=[\t ]*("[^"\\]*(?:\\.[^"\\]*)*"|[^\t "<>;,]*))?)?/gsy;

/**
 * Maps the targets and anchors of a `Link` header. A link that cannot be parsed or mapped is dropped. Undefined when no
 * link is left or the header is too long to parse.
 *
 * @see RFC 8288 section 3
 */
export function mapLinks(header: string, mapping: AddressMapping): string | undefined {
  if (header.length > MAX_LINK_CHARACTERS) return undefined;
  const mapped: string[] = [];
  let count = 0;
  for (const link of linksOf(header)) {
    if (++count > MAX_LINKS) break;
    const text = mapLink(link.trim(), mapping);
    if (text !== undefined) mapped.push(text);
  }
  return mapped.length ? mapped.join(', ') : undefined;
}

/** Splits at commas outside `<>` and quoted strings. An unterminated link is left out. */
function* linksOf(header: string): Generator<string> {
  let parsed = 0;
  let link = '';
  for (const [chunk] of header.matchAll(CHUNK)) {
    parsed += chunk.length;
    if (chunk !== ',') link += chunk;
    else {
      yield link;
      link = '';
    }
  }
  if (parsed === header.length) yield link;
}

function mapLink(link: string, mapping: AddressMapping): string | undefined {
  const [, target, parameters = ''] = LINK.exec(link) ?? [];
  const mapped = target === undefined ? undefined : mapAddress(target, mapping);
  if (mapped === undefined) return undefined;
  let text = '';
  let parsed = 0;
  for (const [parameter, name, value = ''] of parameters.matchAll(PARAMETER)) {
    parsed += parameter.length;
    const anchor = name?.toLowerCase() === 'anchor' ? mapAddress(unquoted(value), mapping) : null;
    if (anchor === undefined) return undefined;
    text += anchor === null ? parameter : `; anchor="${anchor.replace(/["\\]/g, '\\$&')}"`;
  }
  // Other parameters may also contain the upstream's address: a relation type can be a URL.
  const isComplete =
    parsed === parameters.length && !revealsHost(mapped === target ? text : mapped + text, mapping);
  return isComplete ? `<${mapped}>${text}` : undefined;
}

/** Includes the port, unless it is the default port of the scheme. */
function hostOf({ upstreamUrl }: AddressMapping): string {
  return new URL(upstreamUrl).host;
}

function unquoted(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/gs, '$1') : value;
}

function revealsHost(text: string, mapping: AddressMapping): boolean {
  return text.includes(`//${hostOf(mapping)}`);
}
