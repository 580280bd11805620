/** The upstream's paths of a creation. */

export function creationPath(id: string): `/v1/${string}` {
  return `/v1/music/creations/${pathSegment(id)}`;
}

export function contentPath(id: string): `/v1/${string}` {
  return `${creationPath(id)}/content`;
}

export function publicContentPath(id: string): `/v1/${string}` {
  return `/v1/music/public/${pathSegment(id)}/content`;
}

/**
 * Encodes an id for a path. A browser would resolve a dot segment, and so request another path; the gateway refuses one
 * that is encoded twice.
 */
function pathSegment(id: string): string {
  return /^\.{1,2}$/.test(id) ? id.replaceAll('.', '%252E') : encodeURIComponent(id);
}
