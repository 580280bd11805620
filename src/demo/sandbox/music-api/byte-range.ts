/** Reads the Range header for a representation of known size. */

export interface ByteRange {
  fromByte: number;
  /** The range ends before this byte. */
  toByte: number;
}

/**
 * Returns a single satisfiable range, or `unsatisfiable` if it starts past the end. Returns `undefined` if there is
 * no range, or if it may be ignored because it has another unit, several ranges or wrong syntax.
 *
 * @see RFC 9110 section 14.1.2
 */
export function parseRange(header: string | null, size: number): ByteRange | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/i.exec(header ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  if (first === '') {
    return last === '0' ? 'unsatisfiable' : { fromByte: Math.max(0, size - Number(last)), toByte: size };
  }
  if (last !== '' && Number(last) < Number(first)) return undefined;
  if (Number(first) >= size) return 'unsatisfiable';
  return { fromByte: Number(first), toByte: last === '' ? size : Math.min(size, Number(last) + 1) };
}
