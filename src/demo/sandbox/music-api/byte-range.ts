/** Reads the Range header for a representation of known size. */

export interface ByteRange {
  fromByte: number;
  /** Without this byte itself. */
  toByte: number;
}

/**
 * A single satisfiable range; `unsatisfiable` for one that starts past the end; `undefined` for no range and
 * for what may be ignored: other units, several ranges, nonsense.
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
