/** Tracks of an upstream that follows RFC 9110 in ranges and conditions, and that may change before any of its responses. */

import { type ByteRange, contentRange } from '../../../src/gateway/upstream/byte-range.ts';
import type { Received } from '../../support/scripted-upstream.ts';

export interface TrackKind {
  readonly size: number;
  readonly validator: 'strong' | 'weak' | 'date' | 'none';
  /** How its next version differs. With `servers` only the ETag does, and every other version has the same one. */
  readonly change: 'replaced' | 'grown' | 'shrunk' | 'emptied' | 'servers';
  readonly gzip: 'never' | 'asked' | 'always';
  readonly ignoresRanges: boolean;
}

type Bytes = Uint8Array<ArrayBuffer>;

const DAY_MS = 86_400_000;
const PUBLISHED = Date.UTC(2026, 0, 1);
const BOUNDARY = 'boundary-of-parts';
const GAINED_BYTES = { replaced: 0, servers: 0, grown: 7, shrunk: -7, emptied: Number.NEGATIVE_INFINITY };
const RANGE = /^(?:(\d+)-(\d*)|-(\d+))$/;

export class Track {
  version = 0;
  /** Whether it changes before each of the next calls. */
  changes: boolean[] = [];
  readonly kind: TrackKind;
  readonly #made = new Map<string, Bytes>();

  constructor(kind: TrackKind) {
    this.kind = kind;
  }

  bytes(isGzip = false): Bytes {
    const name = `${this.version} ${isGzip}`;
    const bytes = this.#made.get(name) ?? (isGzip ? Bun.gzipSync(this.bytes()) : this.#make());
    this.#made.set(name, bytes);
    return bytes;
  }

  /** The strong ETag of a version, whether or not it is sent. */
  etag(version = this.version): string {
    return `"${this.kind.change === 'servers' ? version % 2 : version}"`;
  }

  modified(version = this.version): string {
    return new Date(PUBLISHED + version * DAY_MS).toUTCString();
  }

  respond({ method, headers }: Received): Response {
    if (this.changes.shift()) this.version++;
    const { validator, ignoresRanges, gzip } = this.kind;
    const isAsked = /\bgzip\b/.test(headers.get('accept-encoding') ?? '');
    const isGzip = gzip === 'always' || (gzip === 'asked' && isAsked);
    const strong = isGzip ? this.etag().replace(/"$/, '-gzip"') : this.etag();
    const etag = { strong, weak: `W/${strong}`, date: '', none: '' }[validator];
    const modified = validator === 'none' ? '' : this.modified();
    const named = { etag, 'last-modified': modified, 'content-encoding': isGzip ? 'gzip' : '' };
    const fields = { ...named, vary: 'accept-encoding', 'content-type': 'audio/wav' };
    const all = new Headers(Object.entries(fields).filter(([, value]) => value));
    const status = failedCondition(headers, etag, modified);
    if (status) return new Response(null, { status, headers: all });
    const bytes = this.bytes(isGzip);
    const isWhole = method !== 'GET' || ignoresRanges || !isOfRange(headers, etag, modified);
    const ranges = isWhole ? undefined : rangesIn(headers.get('range') ?? '', bytes.length);
    return ranges ? partsOf(bytes, ranges, all) : new Response(bytes, { headers: all });
  }

  /** Random ones, which gzip cannot make fewer. */
  #make(): Bytes {
    const { size, change } = this.kind;
    const length = this.version ? Math.max(0, size + GAINED_BYTES[change] * this.version) : size;
    let random = change === 'replaced' ? this.version : 0;
    const next = () => {
      random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0;
      return random >>> 24;
    };
    return Uint8Array.from({ length }, next);
  }
}

function partsOf(bytes: Bytes, ranges: readonly ByteRange[], headers: Headers): Response {
  const parts = ranges.map((range) => ({
    range: contentRange(range, bytes.length),
    part: bytes.slice(range.first, range.last + 1),
  }));
  const [only] = parts;
  if (parts.length < 2) {
    headers.set('content-range', only?.range ?? `bytes */${bytes.length}`);
    return new Response(only?.part ?? null, { status: only ? 206 : 416, headers });
  }
  headers.set('content-type', `multipart/byteranges; boundary=${BOUNDARY}`);
  const lines = parts.flatMap(({ range, part }) => [
    `--${BOUNDARY}\r\ncontent-range: ${range}\r\n\r\n`,
    part,
    '\r\n',
  ]);
  return new Response(new Blob([...lines, `--${BOUNDARY}--\r\n`]), { status: 206, headers });
}

/** @see RFC 9110 section 13.2.2 */
function failedCondition(headers: Headers, etag: string, modified: string): 304 | 412 | undefined {
  const [match, noneMatch] = [headers.get('if-match'), headers.get('if-none-match')];
  const since = (name: string) => Date.parse(headers.get(name) ?? '');
  const at = Date.parse(modified);
  if (match === null ? at > since('if-unmodified-since') : !isListed(match, etag, isStrong)) return 412;
  const isSame = noneMatch === null ? at <= since('if-modified-since') : isListed(noneMatch, etag, isWeak);
  return isSame ? 304 : undefined;
}

const isStrong = (one: string, other: string) => one === other && one.startsWith('"');
const isWeak = (one: string, other: string) => one.replace('W/', '') === other.replace('W/', '');

function isListed(list: string, etag: string, isEqual: typeof isWeak): boolean {
  return list === '*' || (etag !== '' && list.split(',').some((each) => isEqual(each.trim(), etag)));
}

/** @see RFC 9110 section 13.1.5 */
function isOfRange(headers: Headers, etag: string, modified: string): boolean {
  const condition = headers.get('if-range');
  return condition === null || isStrong(condition, etag) || (modified !== '' && condition === modified);
}

/** Those that can be had; undefined where all is to be sent. */
function rangesIn(text: string, size: number): ByteRange[] | undefined {
  const [, set = ''] = /^bytes=(.*)$/i.exec(text) ?? [];
  const asked = set.split(',').flatMap((each) => each.trim() || []);
  const ranges = asked.flatMap((each) => rangeIn(each, size) ?? []);
  const isInvalid = asked.length === 0 || ranges.length < asked.length;
  return isInvalid ? undefined : ranges.filter(({ first, last }) => first <= last);
}

/**
 * The last byte is before the first one where there is nothing; undefined when it is invalid.
 *
 * @see RFC 9110 section 14.1.2
 */
function rangeIn(text: string, size: number): ByteRange | undefined {
  const [isValid, from, to, suffix] = RANGE.exec(text) ?? [];
  if (isValid === undefined || (to && Number(to) < Number(from))) return undefined;
  const first = from === undefined ? Math.max(0, size - Number(suffix)) : Number(from);
  return { first, last: Math.min(to ? Number(to) : size - 1, size - 1) };
}
