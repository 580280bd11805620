/** What the generators make: the bytes of a request, and what is known of it beforehand. */

import { ORIGIN } from '../../support/world.ts';

export interface FuzzRequest {
  readonly index: number;
  readonly marker: string;
  readonly kind: 'grammar' | 'mutated';
  /** One character a byte. */
  readonly bytes: string;
  /** Complete, with a length that is right: it must be answered. */
  readonly isFramed: boolean;
  /** Whether its origin is good, so that it may reach the upstream. */
  readonly mayPass: boolean;
  /** Where the bytes are parted for sending. */
  readonly cuts: readonly number[];
}

const ALLOWED_LINE = new RegExp(
  `(?:^|\\n)origin:[ \\t]*${ORIGIN.replaceAll('.', '\\.')}[ \\t]*\\r?(?:\\n|$)`,
  'i',
);

/** Whether there is one line for the origin, and it is the allowed one. For requests that are well-formed. */
export function hasAllowedOrigin(bytes: string): boolean {
  const [head = ''] = bytes.split('\r\n\r\n', 1);
  const lines = head.split('\r\n').filter((line) => /^origin[ \t]*:/i.test(line));
  return lines.length === 1 && ALLOWED_LINE.test(head);
}

/** Whether any line could be taken for the allowed origin. For bytes of which nobody knows where a header ends. */
export function mentionsAllowedOrigin(bytes: string): boolean {
  return ALLOWED_LINE.test(bytes);
}

/** The bytes in a form that can be pasted into a test: a JSON string, one character a byte. */
export function printable(bytes: string, limit = 4000): string {
  const shown = bytes.length > limit ? `${bytes.slice(0, limit)}...(${bytes.length} bytes)` : bytes;
  return JSON.stringify(shown).replace(
    /[\x7f-\xff]/g,
    (byte) => `\\u00${byte.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
}
