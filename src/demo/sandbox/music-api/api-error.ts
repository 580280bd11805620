/** How the sandbox's upstream API refuses: an error with a status, and its JSON form. */

/** The message is for the caller. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

/** `{"error":{"message":"..."}}`; what is not an `ApiError` is a fault of the sandbox, and printed. */
export function errorResponse(error: unknown): Response {
  const known = error instanceof ApiError;
  if (!known) console.error('Sandbox upstream API:', error);
  const { status, message, headers } = known ? error : new ApiError(500, 'The sandbox has a fault');
  return Response.json({ error: { message } }, { status, headers });
}
