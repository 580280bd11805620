/** What a log may say of an error: names, codes and places. Never a message, which can quote a URL or a header. */

/** Of the innermost error. */
export function describeCause(cause: unknown): string {
  if (!(cause instanceof Error)) return typeof cause;
  if (cause.cause !== undefined) return describeCause(cause.cause);
  const code = 'code' in cause && typeof cause.code === 'string' ? ` ${cause.code}` : '';
  return `${cause.name}${code}`;
}

/** Where in the code it was thrown; of the stack's text, which begins with the message, only what comes after. */
export function placeOf(cause: unknown): string {
  if (!(cause instanceof Error)) return '';
  const frames = cause.stack?.slice(`${cause.name}: ${cause.message}`.length) ?? '';
  return /\n\s+(at .+)/.exec(frames)?.[1] ?? '';
}
