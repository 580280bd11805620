/** One line of a check's report. */

export interface Finding {
  /** The gateway would start and work with a warning; with an error it would not. */
  readonly level: 'ok' | 'warning' | 'error';
  /** What was checked, what was found, and what to do about it; without a secret. */
  readonly text: string;
}

/** How long any server may take to respond. */
export const DEADLINE_MS = 5000;

/** The address without its user, password and query, which may be secret. */
export function shownAddress(address: string): string {
  const { protocol, host, pathname } = new URL(address);
  return `${protocol}//${host}${pathname.replace(/\/$/, '')}`;
}
