/** Describes an error for the log by name, code and location, never by its message: it can quote a URL or a header. */

/** Describes the innermost cause. */
export function describeCause(cause: unknown): string {
  if (!(cause instanceof Error)) return typeof cause;
  if (cause.cause !== undefined) return describeCause(cause.cause);
  const code = 'code' in cause && typeof cause.code === 'string' ? ` ${cause.code}` : '';
  return `${cause.name}${code}`;
}

/** Where in the code the error was thrown. The message, with which the stack begins, is left out. */
export function placeOf(cause: unknown): string {
  if (!(cause instanceof Error)) return '';
  const frames = cause.stack?.slice(`${cause.name}: ${cause.message}`.length) ?? '';
  return /\n\s+(at .+)/.exec(frames)?.[1] ?? '';
}
