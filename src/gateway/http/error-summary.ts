/** Describes an error for the log by name, code and location, never by its message: it can quote a URL or a header. */

/** Describes the innermost cause. */
export function describeCause(cause: unknown): string {
  if (!(cause instanceof Error)) return typeof cause;
  if (cause.cause !== undefined) return describeCause(cause.cause);
  return `${cause.name} ${errorCode(cause)}`.trimEnd();
}

/** The code by which systems and libraries tell errors apart; empty without one. That of a DOMException is a number. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** Where in the code the error was thrown. The message, with which the stack begins, is left out. */
export function stackFrame(cause: unknown): string {
  if (!(cause instanceof Error)) return '';
  const frames = cause.stack?.slice(`${cause.name}: ${cause.message}`.length) ?? '';
  return /\n\s+(at .+)/.exec(frames)?.[1] ?? '';
}
