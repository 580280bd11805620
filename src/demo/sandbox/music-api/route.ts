/** The helpers that the routes of the sandbox's upstream API share. */

import type { Account } from './account.ts';
import { ApiError } from './api-error.ts';

type Handler<R extends Request> = (request: R) => Response | Promise<Response>;

/** @throws ApiError 401 unless the request bears a valid access token */
export type RequireAccount = (request: Request) => Account;

/**
 * Combines the handlers of a path into one that responds to other methods with 405; Bun's own routing would
 * respond with 404. The GET handler also handles HEAD.
 */
export function methods<R extends Request>(
  handlers: Partial<Record<Bun.Serve.HTTPMethod, Handler<R>>>,
): Handler<R> {
  const byMethod = new Map<string, Handler<R>>(Object.entries(handlers));
  if (handlers.GET) byMethod.set('HEAD', handlers.GET);
  const allow = [...byMethod.keys()].join(', ');
  return (request) => {
    const handle = byMethod.get(request.method);
    if (!handle) throw new ApiError(405, `${request.method} is not allowed here`, { Allow: allow });
    return handle(request);
  };
}

/** Wraps data as `{"data":...}`, like every successful response except token pairs and audio. */
export function dataResponse(data: unknown, status = 200): Response {
  return Response.json({ data }, { status, headers: { 'Cache-Control': 'no-store' } });
}
