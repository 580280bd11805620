/** The errors of the sandbox's upstream API: a status, a message, and their JSON form. */

/** The caller receives the message. */
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

/** Makes `{"error":{"message":"..."}}`. Any error but an `ApiError` is a bug of the sandbox, and is printed. */
export function errorResponse(error: unknown): Response {
  const known = error instanceof ApiError;
  if (!known) console.error('Sandbox upstream API:', error);
  const { status, message, headers } = known ? error : new ApiError(500, 'The sandbox has a fault');
  return Response.json({ error: { message } }, { status, headers });
}
